/**
 * Converts a row of a table, or an exported license in JSON, to a row of an import of licenses (docs/api.md#m20), for the console and the
 * command line. The columns are those of an export, and the customer's `email`, `customerExternalId` and `name`.
 */

import { readCell } from '../text.ts'
import { license } from './licenses.ts'

const TEXTS = ['productId', 'templateId', 'externalId', 'customerId', 'key'] as const
const NUMBERS = ['durationDays', 'maxMachines', 'leaseSeconds', 'maxReleases', 'graceDays', 'fileDays'] as const
const OBJECTS = ['entitlements', 'metadata'] as const
const OTHERS = ['product', 'email', 'customerExternalId', 'name', 'type', 'expiresAt', 'status', 'machines'] as const
/** The columns of an export that no request can set. */
const COMPUTED = ['id', 'usedMachines', 'graceEndsAt', 'createdAt', 'updatedAt', 'suspendedAt', 'revokedAt'] as const

export const LICENSE_COLUMNS: readonly string[] = [...TEXTS, ...NUMBERS, ...OBJECTS, ...OTHERS]
const KNOWN = new Set<string>([...LICENSE_COLUMNS, ...COMPUTED])
/** The cell with the value null of a field of the policy. An empty cell leaves the field to the template. */
export const NULL_CELL = 'null'

/** Returns the JSON in a cell. Any other text stays as it is, so that the validation of the row reports it. */
function jsonOf(cell: string): unknown {
  try {
    const value: unknown = JSON.parse(cell)
    return value
  } catch {
    return cell
  }
}

/** Returns the machines of a cell, which contains one machine id in each line, or JSON. */
function machinesOf(cell: string): unknown {
  if (cell.startsWith('[')) return jsonOf(cell)
  return cell.split(/\r?\n/).flatMap((machineId) => (machineId === '' ? [] : [{ machineId }]))
}

function policyOf(cells: ReadonlyMap<string, string>): Record<string, unknown> {
  const policy: Record<string, unknown> = {}
  const type = cells.get('type')
  const expiresAt = cells.get('expiresAt')
  if (type !== undefined) policy['type'] = type.toUpperCase()
  else if (!cells.has('templateId'))
    policy['type'] =
      expiresAt !== undefined || (cells.get('durationDays') ?? NULL_CELL) !== NULL_CELL ? 'SUBSCRIPTION' : 'PERPETUAL'
  if (expiresAt !== undefined)
    policy['expiresAt'] = /^\d{4}-\d{2}-\d{2}$/.test(expiresAt) ? `${expiresAt}T00:00:00Z` : expiresAt
  for (const name of NUMBERS) {
    const cell = cells.get(name)
    if (cell !== undefined) policy[name] = cell === NULL_CELL ? null : /^\d+$/.test(cell) ? Number(cell) : cell
  }
  // In an export, a license whose term has started has both. Its term has an end.
  if (expiresAt !== undefined) delete policy['durationDays']
  return policy
}

/** Whether a license is in its grace period or expired follows from its expiry. */
function statusOf(status: string): string {
  return status === 'expired' || status === 'grace' ? 'active' : status
}

/**
 * Returns the row of an import, unchecked. Empty cells count as absent. Columns with other names become metadata. Beside metadata they become
 * members of the row, which its validation reports. The column `product` with a name is left to the caller.
 */
export function licenseOfCells(record: Readonly<Record<string, string>>): Record<string, unknown> {
  const cells = new Map(
    Object.entries(record).flatMap(([name, cell]) => (cell === '' ? [] : [[name, readCell(cell)] as const])),
  )
  const row: Record<string, unknown> = {}
  for (const name of TEXTS) if (cells.has(name)) row[name] = cells.get(name)
  for (const name of OBJECTS) if (cells.has(name)) row[name] = jsonOf(cells.get(name) ?? '')
  const policy = policyOf(cells)
  if (Object.keys(policy).length > 0) row['policy'] = policy
  const [email, externalId, name] = ['email', 'customerExternalId', 'name'].map((column) => cells.get(column))
  if (row['customerId'] === undefined && (email ?? externalId) !== undefined)
    row['customer'] = {
      ...(externalId !== undefined && { externalId }),
      ...(email !== undefined && { email }),
      ...(name !== undefined && { name }),
    }
  const status = cells.get('status')?.toLowerCase()
  if (status !== undefined) row['status'] = statusOf(status)
  if (cells.has('machines')) row['machines'] = machinesOf(cells.get('machines') ?? '')
  const more = [...cells].filter(([column]) => !KNOWN.has(column))
  if (row['metadata'] !== undefined) return { ...row, ...Object.fromEntries(more) }
  if (more.length > 0) row['metadata'] = Object.fromEntries(more)
  return row
}

/** Returns the row of an import for a license as an export in JSON lines contains it. Any other row stays as it is. */
export function licenseOfJson(row: Record<string, unknown>): Record<string, unknown> {
  const exported = license.safeParse(row)
  if (!exported.success) return row
  const { key, status, productId, templateId, customerId, externalId, policy, entitlements, metadata } = exported.data
  return {
    key,
    status: statusOf(status),
    productId,
    ...(templateId !== null && { templateId }),
    customerId,
    externalId,
    policy: policy.expiresAt === null ? policy : { ...policy, durationDays: null },
    entitlements,
    metadata,
  }
}
