import { ApiError } from './client.ts'
import type { BadRow } from './work.ts'

/**
 * Splits the rows of a request into the rejected rows and all other rows. `list` is the member of the request that contains the rows.
 * Returns null if the error concerns the whole request.
 */
export function rejectedRows<Row extends { where: string }>(
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
