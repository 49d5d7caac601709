// What `joinFeed` loads, table by table: the columns to copy and how a copied row becomes a change. What others refer to
// comes first; rules come before machines, which are the most by far and without which a verdict is still right.

import type { CopyRow } from './copy-decoder.ts'
import { type FeedChange, licenseChange, ruleChange } from './entities.ts'

export interface TableToLoad {
  readonly select: string
  readonly fields: number
  /** A fresh reader for each load; it may keep something from row to row. */
  readonly reader: () => (row: CopyRow) => FeedChange
}

/** Moments as milliseconds; null stays null. */
const ms = (column: string): string => `floor(extract(epoch from ${column}) * 1000)::float8`
const msOrNever = (row: CopyRow, field: number): number => (row.isNull(field) ? Infinity : row.float8(field))
const idOrNull = (row: CopyRow, field: number) => (row.isNull(field) ? null : row.bytes(field))

function owned(entity: 'product' | 'customer', table: string): TableToLoad {
  const read = (row: CopyRow): FeedChange => {
    const id = row.bytes(0)
    return { entity, id, row: { id, organizationId: row.bytes(1) } }
  }
  return { select: `select id, organization_id from ${table}`, fields: 2, reader: () => read }
}

const organizations: TableToLoad = {
  select: 'select id from organizations',
  fields: 1,
  reader: () => (row) => {
    const id = row.bytes(0)
    return { entity: 'organization', id, row: { id } }
  },
}

const credentials: TableToLoad = {
  select: `select id, organization_id, secret_hash, ${ms('expires_at')}, revoked_at is not null
    from credentials where kind = 'API_KEY'`,
  fields: 5,
  reader: () => (row) => {
    const id = row.bytes(0)
    const rest = { secretHash: row.bytes(2), expiresAtMs: msOrNever(row, 3), revoked: row.boolean(4) }
    return { entity: 'credential', id, row: { id, organizationId: row.bytes(1), ...rest } }
  },
}

const signingKeys: TableToLoad = {
  select: `select id, organization_id, key_id, public_key, ${ms('created_at')}, ${ms('retired_at')}, ${ms('withdrawn_at')}
    from signing_keys`,
  fields: 7,
  reader: () => (row) => {
    const id = row.bytes(0)
    const times = { createdAtMs: row.float8(4), retiredAtMs: msOrNever(row, 5), withdrawnAtMs: msOrNever(row, 6) }
    const key = { id, organizationId: row.bytes(1), keyId: row.text(2), publicKey: row.bytes(3), ...times }
    return { entity: 'signingKey', id, row: key }
  },
}

const licenses: TableToLoad = {
  select: `select l.id, l.organization_id, l.product_id, l.customer_id, l.key, l.status, ${ms('l.expires_at')},
      l.max_machines, s.used
    from licenses l join license_slots s on s.license_id = l.id`,
  fields: 9,
  reader: () => (row) =>
    licenseChange(
      {
        id: row.bytes(0),
        organizationId: row.bytes(1),
        productId: row.bytes(2),
        customerId: row.bytes(3),
        key: row.bytes(4),
        expiresAtMs: msOrNever(row, 6),
        maxMachines: row.isNull(7) ? null : row.int4(7),
        used: row.int4(8),
      },
      row.text(5),
    ),
}

const rules = (which: string): TableToLoad => ({
  select: `select id, organization_id, kind, type, value, scope, scope_id, customer_id, ${ms('expires_at')},
      allow_suspended_or_expired
    from access_rules where ${which}`,
  fields: 10,
  reader: () => (row) =>
    ruleChange(
      {
        id: row.bytes(0),
        organizationId: row.bytes(1),
        type: row.text(3),
        value: row.bytes(4),
        scopeId: idOrNull(row, 6),
        customerId: idOrNull(row, 7),
        expiresAtMs: msOrNever(row, 8),
        allowSuspendedOrExpired: row.boolean(9),
      },
      row.text(2),
      row.text(5),
    ),
})

const machines: TableToLoad = {
  // Without `license_slots`: the licenses have told how many slots are taken, and joining it took longer than all the rest.
  select: 'select license_id, machine_id from machines',
  fields: 2,
  reader: () => {
    let licenseId: Uint8Array = new Uint8Array(0)
    return (row) => {
      if (!row.equals(0, licenseId)) licenseId = row.bytes(0) // machines of one license mostly stand together
      return { entity: 'machine', licenseId, machineId: row.bytes(1), held: true, used: null }
    }
  },
}

/** They come before the licenses that a merge has brought under them, so that none is unblocked while everything is loaded again. */
const CUSTOMER_RULES = `(type = 'CUSTOMER' and scope <> 'LICENSE')`

export const TABLES: readonly TableToLoad[] = [
  organizations,
  owned('product', 'products'),
  owned('customer', 'customers'),
  credentials,
  signingKeys,
  rules(CUSTOMER_RULES),
  licenses,
  rules(`not ${CUSTOMER_RULES}`),
  machines,
]

/** By far the largest; verdicts are right without it. */
export const LAST_TABLE = machines
