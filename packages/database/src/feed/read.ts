// Reads what became visible since a snapshot: no gap, no double, no waiting for other open transactions. It is one
// statement, and so one snapshot: the log, the rows that changed and the new snapshot fit each other.

import type pg from 'pg'

import { type FeedChange, licenseChange, ruleChange } from './entities.ts'
import { READ_FEED } from './read-sql.ts'

export interface FeedReading {
  /** To be given to the next read. Text of a `pg_snapshot`. */
  readonly snapshot: string
  /** The log does not reach back to the given snapshot, or says so much that loading everything is quicker. */
  readonly behind: boolean
  readonly changes: FeedChange[]
}

/** More changes than this are no longer fetched one by one. */
const MOST_CHANGES = 20_000

/**
 * What changed after `snapshot`, each entity once, with its row as it is now. When `behind`, there are no changes and
 * everything must be loaded again (`joinFeed`). Run it on the primary, outside of any transaction.
 */
export async function readFeed(
  client: Pick<pg.ClientBase, 'query'>,
  snapshot: string,
  mostChanges: number = MOST_CHANGES,
): Promise<FeedReading> {
  const values = [snapshot, mostChanges + 1]
  const { rows } = await client.query<Row>({ name: 'keyward-read-feed', text: READ_FEED, values })
  const head = rows.find((row) => row.entity === 'S')
  if (head === undefined) throw new Error('The change log has no state; migrate the database')
  if (head.flag || rows.length - 1 > mostChanges) return { snapshot: head.textA, behind: true, changes: [] }
  const changes: FeedChange[] = []
  for (const row of rows) if (row !== head) changes.push(toChange(row))
  return { snapshot: head.textA, behind: false, changes }
}

/** The columns that all branches of the statement share; each fills those that it needs. */
interface Row {
  readonly entity: string
  readonly id: Buffer
  readonly present: boolean
  readonly organization: Buffer
  readonly idA: Buffer
  readonly idB: Buffer
  readonly bytes: Buffer
  readonly textA: string
  readonly textB: string
  readonly textC: string
  readonly numberA: number
  readonly numberB: number
  readonly numberC: number
  readonly flag: boolean
}

function toChange(row: Row): FeedChange {
  const { id, organization: organizationId } = row
  switch (row.entity) {
    case 'M':
      return { entity: 'machine', licenseId: id, machineId: row.bytes, held: row.flag, used: row.numberA }
    case 'O':
      return { entity: 'organization', id, row: row.present ? { id } : null }
    case 'P':
      return { entity: 'product', id, row: row.present ? { id, organizationId } : null }
    case 'U':
      return { entity: 'customer', id, row: row.present ? { id, organizationId } : null }
    case 'C':
      return { entity: 'credential', id, row: row.present ? toCredential(row) : null }
    case 'K':
      return { entity: 'signingKey', id, row: row.present ? toSigningKey(row) : null }
    case 'L':
      return row.present ? toLicense(row) : { entity: 'license', id, row: null }
    case 'R':
      return row.present ? toRule(row) : { entity: 'rule', id, row: null }
    default:
      throw new Error(`The change log has entries of an unknown kind (${row.entity})`)
  }
}

function toCredential(row: Row) {
  const { id, organization: organizationId, bytes: secretHash, numberA: expiresAtMs, flag: revoked } = row
  return { id, organizationId, secretHash, expiresAtMs, revoked }
}

function toSigningKey(row: Row) {
  const { id, organization: organizationId, textA: keyId, bytes: publicKey } = row
  const { numberA: createdAtMs, numberB: retiredAtMs, numberC: withdrawnAtMs } = row
  return { id, organizationId, keyId, publicKey, createdAtMs, retiredAtMs, withdrawnAtMs }
}

function toLicense(row: Row): FeedChange {
  const { id, organization: organizationId, idA: productId, idB: customerId, bytes: key } = row
  const maxMachines = row.numberB === Infinity ? null : row.numberB
  const license = { id, organizationId, productId, customerId, key, expiresAtMs: row.numberA, maxMachines }
  return licenseChange({ ...license, used: row.numberC }, row.textA)
}

function toRule(row: Row): FeedChange {
  const { id, organization: organizationId, textB: type, bytes: value, idA, idB } = row
  const rule = { id, organizationId, type, value, scopeId: idA, customerId: idB, expiresAtMs: row.numberA }
  return ruleChange({ ...rule, allowSuspendedOrExpired: row.flag }, row.textA, row.textC)
}
