/** Divides long lists, so that no statement and no loop occupies the only thread of the process for long. */

import { setImmediate as nextTurn } from 'node:timers/promises'

/** The number of rows in one statement. Converting their values takes a few milliseconds. */
const ROWS_PER_STATEMENT = 500
/** The number of entries that a loop processes before the process serves other requests. */
const ENTRIES_PER_TURN = 1_000

/** Yields the list in pieces, each small enough for one statement. */
export function* piecesOf<Value>(list: readonly Value[]): Generator<Value[]> {
  for (let at = 0; at < list.length; at += ROWS_PER_STATEMENT) yield list.slice(at, at + ROWS_PER_STATEMENT)
}

/** Yields the entries of the list. After every 1,000 entries, the process serves other requests before the next entry. */
export async function* inTurns<Value>(list: readonly Value[]): AsyncGenerator<Value> {
  for (let at = 0; at < list.length; at += ENTRIES_PER_TURN) {
    if (at > 0) await nextTurn()
    yield* list.slice(at, at + ENTRIES_PER_TURN)
  }
}
