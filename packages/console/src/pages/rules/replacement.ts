import type { CreateAccessRule } from '@keyward/contract'

/** A rule of the list or of the set. Rules with the same identity have the same kind, type, value and scope. */
interface Row {
  identity: string
  body: Partial<Pick<CreateAccessRule, 'mode' | 'note' | 'allowSuspendedOrExpired'>> & { expiresAt?: unknown }
}

export interface Counts {
  created: number
  changed: number
  unchanged: number
  removed: number
  repeated: number
}

const endOf = ({ body: { expiresAt } }: Row): number =>
  typeof expiresAt === 'string' ? Date.parse(expiresAt) : Infinity

/** Returns a string that is equal for rules with the same effect until they end. */
function effectOf({ identity, body: { mode = 'ENFORCE', allowSuspendedOrExpired = false } }: Row): string {
  return [identity, mode, allowSuspendedOrExpired].join('\n')
}

/** Counts the changes with which the service replaces the rules of a set with a list (docs/api.md#r9). `stored` contains no expired rules. */
export function countsOf(stored: readonly Row[], given: readonly Row[]): Counts {
  // A row covers the rows with the same effect that do not end later.
  const latest = new Map<string, Row>()
  for (const row of given) {
    const other = latest.get(effectOf(row))
    if (!other || endOf(row) > endOf(other)) latest.set(effectOf(row), row)
  }
  const counts: Counts = { created: 0, changed: 0, unchanged: 0, removed: 0, repeated: given.length - latest.size }
  const rest = Map.groupBy(stored, ({ identity }) => identity)
  const take = (row: Row, isTaken: (candidate: Row) => boolean): Row | undefined => {
    const candidates = rest.get(row.identity) ?? []
    const at = candidates.findIndex(isTaken)
    return at < 0 ? undefined : candidates.splice(at, 1)[0]
  }
  // The stored rules that equal a row are kept for it. Each other row changes another rule with its identity, if there is one.
  const others: Row[] = []
  for (const row of latest.values()) {
    const equal = take(row, (one) => effectOf(one) === effectOf(row) && endOf(one) === endOf(row))
    if (!equal) others.push(row)
    else if ((equal.body.note ?? null) === (row.body.note ?? null)) counts.unchanged++
    else counts.changed++
  }
  for (const row of others)
    if (take(row, () => true)) counts.changed++
    else counts.created++
  for (const candidates of rest.values()) counts.removed += candidates.length
  return counts
}
