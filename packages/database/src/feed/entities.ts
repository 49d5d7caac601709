/**
 * Declares every entity of the change feed: its letter in the change log, its table, and its columns. The load, the reads of the change log
 * and the row types are derived from the declaration. A new column that a verdict needs requires one line here, and one in the column list
 * of the entity's trigger (migrations/). A test compares the columns with the trigger.
 */

import type {
  AccessRuleRecord,
  CredentialRecord,
  CustomerRecord,
  Id,
  LicenseRecord,
  MachineChange,
  OrganizationRecord,
  ProductRecord,
} from '@keyward/engine'

import { type Column, type ColumnReader, columnsOf } from './columns.ts'

export type { Id, MachineChange } from '@keyward/engine'

/** A change of an entity: its current row, or null if the row was deleted. */
interface RowChange<Name extends string, Row> {
  readonly entity: Name
  readonly id: Id
  readonly row: Row | null
}

interface Entity<Name extends string, Row> {
  readonly name: Name
  /** The value of `change_log.entity`. */
  readonly letter: string
  readonly table: string
  /** The table and the tables that are joined to it. */
  readonly from: string
  /** The condition for the rows of the table that belong to the feed. */
  readonly where: string
  readonly columns: readonly Column[]
  readonly read: (columns: ColumnReader) => RowChange<Name, Row>
  readonly gone: (id: Id) => RowChange<Name, Row>
}

/** Selects `jsonb` as text, because its binary form begins with a version byte. */
const ENTITLEMENTS = { sql: 'entitlements::text', dependsOn: ['entitlements'] } as const

/**
 * Declares an entity. Text columns have the type `string` even if a check constraint restricts them. The consumer
 * validates them.
 */
function entity<const Name extends string, Row extends { readonly id: Id }>(
  name: Name,
  letter: string,
  table: string,
  readRow: (columns: ColumnReader) => Row,
  { from = table, where = 'true' }: { readonly from?: string; readonly where?: string } = {},
): Entity<Name, Row> {
  const read = (columns: ColumnReader): RowChange<Name, Row> => {
    const row = readRow(columns)
    return { entity: name, id: row.id, row }
  }
  const gone = (id: Id): RowChange<Name, Row> => ({ entity: name, id, row: null })
  return { name, letter, table, from, where, columns: columnsOf(readRow), read, gone }
}

export const ORGANIZATION = entity('organization', 'O', 'organizations', (column): OrganizationRecord => ({
  id: column.uuid('id'),
}))

export const PRODUCT = entity('product', 'P', 'products', (column): ProductRecord => ({
  id: column.uuid('id'),
  organizationId: column.uuid('organization_id'),
  entitlements: column.bytesOrNull('entitlements', ENTITLEMENTS),
}))

export const CUSTOMER = entity('customer', 'U', 'customers', (column): CustomerRecord => ({
  id: column.uuid('id'),
  organizationId: column.uuid('organization_id'),
}))

export const CREDENTIAL = entity(
  'credential',
  'C',
  'credentials',
  (column): CredentialRecord => ({
    id: column.uuid('id'),
    organizationId: column.uuid('organization_id'),
    secretHash: column.bytes('secret_hash'),
    productId: column.uuidOrNull('product_id'),
    expiresAtMs: column.timeOrNever('expires_at'),
  }),
  { where: `kind = 'API_KEY' and revoked_at is null` },
)

export const SIGNING_KEY = entity('signingKey', 'K', 'signing_keys', (column) => ({
  id: column.uuid('id'),
  organizationId: column.uuid('organization_id'),
  keyId: column.text('key_id'),
  publicKey: column.bytes('public_key'),
  createdAtMs: column.timeOrNever('created_at'),
  /** The time at which the key was retired, or Infinity for the current key. */
  retiredAtMs: column.timeOrNever('retired_at'),
  /** The time at which the key was withdrawn, or Infinity while its files are trusted. */
  withdrawnAtMs: column.timeOrNever('withdrawn_at'),
  /** The time at which the key was prepared, or Infinity once the key has begun to sign. */
  preparedAtMs: column.timeOrNever('prepared_at'),
  /** The delegations by the public keys of the validators, as JSON. */
  delegations: column.text('delegations', { sql: 'delegations::text', dependsOn: ['delegations'] }),
}))

export const LICENSE = entity(
  'license',
  'L',
  'licenses',
  (column): Omit<LicenseRecord, 'status'> & { status: string } => ({
    id: column.uuid('id'),
    organizationId: column.uuid('organization_id'),
    productId: column.uuid('product_id'),
    customerId: column.uuid('customer_id'),
    key: column.bytes('key'),
    status: column.text('status'),
    /** The time at which the license expires, or -Infinity (the engine's NOT_STARTED) while its term has not started. */
    expiresAtMs: column.timeOrNever('expires_at', {
      sql: `case when duration_days is null then expires_at else coalesce(expires_at, '-infinity') end`,
      dependsOn: ['expires_at', 'duration_days'],
    }),
    maxMachines: column.integerOrNull('max_machines'),
    /** Adding or removing a machine is a change of the machine, so a new `used` is not a change of the license. */
    used: column.integer('used', { dependsOn: [] }),
    entitlements: column.bytesOrNull('entitlements', ENTITLEMENTS),
    leaseSeconds: column.integerOrNull('lease_seconds'),
    graceDays: column.integerOrNull('grace_days', { sql: 'nullif(grace_days, 0)', dependsOn: ['grace_days'] }),
  }),
  { from: 'licenses join license_slots on license_slots.license_id = licenses.id' },
)

type StoredRule = Omit<AccessRuleRecord, 'kind' | 'mode' | 'type' | 'scope'> & {
  kind: string
  mode: string
  type: string
  /** The canonical value: the text of an address or network, a machine id, a country code, or the id of a customer. */
  value: Uint8Array
  scope: string
  customerId: Id | null
}

export const ACCESS_RULE = entity('rule', 'R', 'access_rules', (column): StoredRule => ({
  id: column.uuid('id'),
  organizationId: column.uuid('organization_id'),
  kind: column.text('kind'),
  mode: column.text('mode'),
  type: column.text('type'),
  value: column.bytes('value'),
  scope: column.text('scope'),
  scopeId: column.uuidOrNull('scope_id', { dependsOn: ['product_id', 'license_id'] }),
  customerId: column.uuidOrNull('customer_id'),
  expiresAtMs: column.timeOrNever('expires_at'),
  allowSuspendedOrExpired: column.boolean('allow_suspended_or_expired'),
}))

/**
 * All entities except machines. Their changes contain the whole row. The change of a machine states whether the machine holds a slot, and
 * how many slots of its license are taken.
 */
export const ENTITIES = [ORGANIZATION, PRODUCT, CUSTOMER, CREDENTIAL, SIGNING_KEY, LICENSE, ACCESS_RULE] as const

export const MACHINE_LETTER = 'M'

/** Reads a machine in a load. The license's row contains the number of taken slots. */
export function readLoadedMachine(column: ColumnReader): MachineChange {
  const licenseId = column.repeatedUuid('license_id')
  return { entity: 'machine', licenseId, machineId: column.bytes('machine_id'), held: true, used: null }
}

/** Reads the current state of a machine that was added or removed. `changed` is its entry in the change log. */
export function readChangedMachine(column: ColumnReader): MachineChange {
  return {
    entity: 'machine',
    licenseId: column.uuid('license_id', { sql: 'changed.id' }),
    machineId: column.bytes('machine_id', { sql: 'changed.machine_id' }),
    held: column.boolean('held', {
      sql: `exists (select from machines m where m.license_id = changed.id and m.machine_id = changed.machine_id)`,
    }),
    used: column.integer('used', {
      sql: `coalesce((select used from license_slots s where s.license_id = changed.id), 0)`,
    }),
  }
}

type ChangeOf<E> = E extends Entity<infer Name, infer Row> ? RowChange<Name, Row> : never
type RowOf<E> = NonNullable<ChangeOf<E>['row']>

export type SigningKeyRow = RowOf<typeof SIGNING_KEY>
/** A license as stored. Its status is not validated. */
export type LicenseRow = RowOf<typeof LICENSE>
/** A rule as stored. Its kind, mode, type, value and scope are not validated. */
export type RuleRow = RowOf<typeof ACCESS_RULE>

/** A change of the feed. The engine accepts changes of organizations, products, customers, credentials and machines without conversion. */
export type FeedChange = ChangeOf<(typeof ENTITIES)[number]> | MachineChange
