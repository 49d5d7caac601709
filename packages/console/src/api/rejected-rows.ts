import { ApiError } from './client.ts'
import type { BadRow } from './work.ts'

/**
 * Splits the rows of a request into the rejected rows and all other rows. `list` is the member of the request that contains the rows.
 * Returns null if the error concerns the whole request.
 */
function rejectedRows<Row extends { where: string }>(
  error: unknown,
  list: string,
  rows: readonly Row[],
): { rest: Row[]; bad: BadRow[] } | null {
  if (!(error instanceof ApiError)) return null
  const bad = new Map<number, BadRow>()
  for (const { pointer, detail } of error.problem.errors ?? []) {
    const [, name, at, ...field] = pointer.split('/')
    const row = name === list ? rows[Number(at)] : undefined
    if (row) bad.set(Number(at), { where: row.where, detail: `${field.join('/')} ${detail}`.trim() })
  }
  if (bad.size === 0) return null
  return { rest: rows.filter((_, index) => !bad.has(index)), bad: [...bad.values()] }
}

/** Sends the rows without those that the API rejects, which are returned in `bad`. `result` is null if the API accepts no row. */
export async function sendRows<Row extends { where: string }, Result>(
  list: string,
  rows: readonly Row[],
  send: (rows: readonly Row[]) => Promise<Result>,
): Promise<{ result: Result | null; bad: BadRow[] }> {
  const bad: BadRow[] = []
  for (let rest = rows; rest.length > 0;) {
    try {
      return { result: await send(rest), bad }
    } catch (error) {
      const rejected = rejectedRows(error, list, rest)
      if (rejected === null) throw error
      bad.push(...rejected.bad)
      rest = rejected.rest
    }
  }
  return { result: null, bad }
}
