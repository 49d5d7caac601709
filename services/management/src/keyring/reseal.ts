import type { Db } from '../context.ts'

const BATCH_ROWS = 500

/**
 * Calls `resealBatch` in one transaction after the other, until it has resealed fewer rows than it may. Returns the number of all rows.
 * Several processes may reseal the same table at once, because each batch locks its rows.
 */
export async function resealRows(
  db: Db,
  resealBatch: (transaction: Db, maxRows: number) => Promise<number>,
): Promise<number> {
  for (let done = 0; ;) {
    const count = await db.transaction().execute((transaction) => resealBatch(transaction, BATCH_ROWS))
    done += count
    if (count < BATCH_ROWS) return done
  }
}
