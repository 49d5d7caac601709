/** Computes the difference between two worlds, for tests that apply it to an index. */

import type { Change, Id } from '../../src/index.ts'
import type { History } from './history.ts'
import { hex } from './naive.ts'

/** Returns the changes that lead from one world to another: each row that differs, once. */
export function changesBetween(before: History, after: History): Change[] {
  const changes: Change[] = []
  const compare = <Row extends { id: Id }>(
    from: Row[],
    to: Row[],
    change: (id: Id, row: Row | null) => Change,
  ): void => {
    for (const row of to) if (!from.includes(row)) changes.push(change(row.id, row))
    for (const { id } of from) if (!to.some((row) => hex(row.id) === hex(id))) changes.push(change(id, null))
  }
  compare(before.organizations, after.organizations, (id, row) => ({ entity: 'organization', id, row }))
  compare(before.products, after.products, (id, row) => ({ entity: 'product', id, row }))
  compare(before.customers, after.customers, (id, row) => ({ entity: 'customer', id, row }))
  compare(before.credentials, after.credentials, (id, row) => ({ entity: 'credential', id, row }))
  compare(before.licenses, after.licenses, (id, row) => ({ entity: 'license', id, row }))
  compare(before.rules, after.rules, (id, row) => ({ entity: 'rule', id, row }))
  const usedOf = (id: Id): number => after.licenses.find((one) => hex(one.id) === hex(id))?.used ?? 0
  const isIn = (machines: History['machines'], { licenseId, machineId }: History['machines'][number]): boolean =>
    machines.some((one) => hex(one.licenseId) === hex(licenseId) && hex(one.machineId) === hex(machineId))
  for (const [from, to, held] of [
    [before, after, true],
    [after, before, false],
  ] as const) {
    for (const one of to.machines) {
      if (isIn(from.machines, one)) continue
      changes.push({ entity: 'machine', ...one, held, used: usedOf(one.licenseId) })
    }
  }
  return changes
}
