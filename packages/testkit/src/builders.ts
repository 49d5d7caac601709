/**
 * Inserts rows for tests directly into the tables. Every omitted value has a valid default. Builders return the ids and
 * secrets of the inserted rows.
 */

import { bytesToUuid, createSecret, type SecretKind, uuidv7, uuidv7Bytes } from '@keyward/database'
import type pg from 'pg'

type Queryable = Pick<pg.Pool, 'query'>

export async function insertOrganization(
  pool: Queryable,
  given: { id?: string; name?: string; plan?: 'FREE' | 'LITE' | 'STANDARD' } = {},
): Promise<string> {
  const id = given.id ?? uuidv7()
  const values = [id, given.name ?? 'Acme', given.plan ?? 'STANDARD']
  await pool.query('insert into organizations (id, name, plan) values ($1, $2, $3)', values)
  return id
}

export async function insertProduct(
  pool: Queryable,
  given: { organizationId: string; name?: string; entitlements?: object },
): Promise<string> {
  const id = uuidv7()
  const values = [id, given.organizationId, given.name ?? 'Editor']
  await pool.query('insert into products (id, organization_id, name) values ($1, $2, $3)', values)
  if (given.entitlements) await setEntitlements(pool, 'products', id, given.entitlements)
  return id
}

/** Sets the entitlements in a separate statement, so that the builders also work on schemas without these columns. */
async function setEntitlements(
  pool: Queryable,
  table: 'products' | 'licenses',
  id: string,
  entitlements: object,
): Promise<void> {
  await pool.query(`update ${table} set entitlements = $2 where id = $1`, [id, entitlements])
}

export async function insertCustomer(
  pool: Queryable,
  given: { organizationId: string; email?: string },
): Promise<string> {
  const id = uuidv7()
  const values = [id, given.organizationId, given.email ?? 'buyer@example.com']
  await pool.query('insert into customers (id, organization_id, email) values ($1, $2, $3)', values)
  return id
}

export interface LicenseToInsert {
  readonly organizationId: string
  /** The id of the product. Default: a product that the builder inserts. */
  readonly productId?: string
  readonly customerId?: string
  readonly key?: string
  readonly status?: 'active' | 'suspended' | 'revoked'
  /** The machine limit, or null for no limit. Default: 5. */
  readonly maxMachines?: number | null
  /** The expiry. Default: never. */
  readonly expiresAt?: Date | null
  readonly entitlements?: object
  /** The length of the term in days. Without `expiresAt`, the term starts with the first VALID check. */
  readonly durationDays?: number | null
  readonly leaseSeconds?: number | null
  readonly graceDays?: number
}

interface InsertedLicense {
  readonly id: string
  readonly key: string
  readonly productId: string
  readonly customerId: string
}

export async function insertLicense(pool: Queryable, given: LicenseToInsert): Promise<InsertedLicense> {
  const { organizationId } = given
  const productId = given.productId ?? (await insertProduct(pool, { organizationId }))
  const customerId = given.customerId ?? (await insertCustomer(pool, { organizationId }))
  const id = uuidv7()
  const key = given.key ?? `KEY-${id}`
  const expiresAt = given.expiresAt ?? null
  const durationDays = given.durationDays ?? null
  // Tests of upgrades insert rows into earlier schemas, which lack these columns.
  const later = Object.entries({
    duration_days: durationDays,
    lease_seconds: given.leaseSeconds ?? null,
    grace_days: given.graceDays ?? null,
  })
  const more = later.filter(([, value]) => value !== null)
  const columns = more.map(([name]) => `, ${name}`).join('')
  const values = more.map((_, i) => `, $${i + 10}`).join('')
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, status, policy_type, max_machines, expires_at${columns})
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9${values})`,
    [
      id,
      organizationId,
      productId,
      customerId,
      key,
      given.status ?? 'active',
      expiresAt === null && durationDays === null ? 'PERPETUAL' : 'SUBSCRIPTION',
      given.maxMachines === undefined ? 5 : given.maxMachines,
      expiresAt,
      ...more.map(([, value]) => value),
    ],
  )
  if (given.entitlements) await setEntitlements(pool, 'licenses', id, given.entitlements)
  return { id, key, productId, customerId }
}

export async function insertMachine(
  pool: Queryable,
  given: { licenseId: string; machineId: string | Uint8Array; hostname?: string },
): Promise<string> {
  const id = uuidv7()
  const values = [id, given.licenseId, Buffer.from(given.machineId), given.hostname ?? null]
  await pool.query('insert into machines (id, license_id, machine_id, hostname) values ($1, $2, $3, $4)', values)
  return id
}

export interface RuleToInsert {
  readonly organizationId: string
  readonly kind?: 'BLACKLIST' | 'EXCLUSION' | 'RESTRICTION'
  readonly mode?: 'ENFORCE' | 'MONITOR'
  readonly type?: 'IP' | 'HWID' | 'COUNTRY' | 'CUSTOMER'
  /** The canonical value: an address or network, a machine id, a country code, or the id of a customer. */
  readonly value: string | Uint8Array
  /** The id of the product that is the scope. Without `productId` and `licenseId`, the scope is the organization. */
  readonly productId?: string
  readonly licenseId?: string
  readonly expiresAt?: Date | null
  readonly allowSuspendedOrExpired?: boolean
}

export async function insertRule(pool: Queryable, given: RuleToInsert): Promise<string> {
  const id = uuidv7()
  const type = given.type ?? 'IP'
  const scope = given.licenseId !== undefined ? 'LICENSE' : given.productId !== undefined ? 'PRODUCT' : 'ORGANIZATION'
  await pool.query(
    `insert into access_rules (id, organization_id, kind, type, value, scope, product_id, license_id, customer_id,
       expires_at, allow_suspended_or_expired, created_by)
     values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, '{"type":"OPERATOR"}')`,
    [
      id,
      given.organizationId,
      given.kind ?? 'BLACKLIST',
      type,
      Buffer.from(given.value),
      scope,
      given.productId ?? null,
      given.licenseId ?? null,
      type === 'CUSTOMER' ? Buffer.from(given.value).toString() : null,
      given.expiresAt ?? null,
      given.allowSuspendedOrExpired ?? false,
    ],
  )
  // Earlier schemas have no column `mode`.
  if (given.mode === 'MONITOR') await pool.query(`update access_rules set mode = 'MONITOR' where id = $1`, [id])
  return id
}

/** Inserts an API key or a credential of another kind. Returns the `secret` for the authorization header. */
export async function insertApiKey(
  pool: Queryable,
  given: {
    organizationId: string
    kind?: Exclude<SecretKind, 'ACCESS_TOKEN'>
    permissions?: string[]
    expiresAt?: Date
    /** The id of the product that the key is bound to. */
    productId?: string
  },
): Promise<{ id: string; secret: string }> {
  const { kind, secret, prefix, hash } = createSecret(given.kind ?? 'API_KEY')
  const id = uuidv7()
  const [column, value] = given.productId === undefined ? ['', ''] : [', product_id', ', $9']
  const values = [
    id,
    given.organizationId,
    kind,
    'test',
    prefix,
    hash,
    given.permissions ?? [],
    given.expiresAt ?? null,
  ]
  await pool.query(
    `insert into credentials (id, organization_id, kind, name, prefix, secret_hash, permissions, expires_at${column})
     values ($1, $2, $3, $4, $5, $6, $7, $8${value})`,
    given.productId === undefined ? values : [...values, given.productId],
  )
  return { id, secret }
}

/** Inserts a signing key with an invalid private key, for tests that only read the public key. */
export async function insertSigningKey(
  pool: Queryable,
  given: { organizationId: string; publicKey?: Uint8Array; keyId?: string },
): Promise<{ id: string; keyId: string }> {
  const id = uuidv7Bytes()
  const keyId = given.keyId ?? bytesToUuid(id)
  const publicKey = given.publicKey ?? new Uint8Array(32).fill(7)
  await pool.query(
    `insert into signing_keys (id, organization_id, key_id, public_key, private_key_encrypted, master_key_id)
     values ($1, $2, $3, $4, '\\x00', 'test')`,
    [bytesToUuid(id), given.organizationId, keyId, publicKey],
  )
  return { id: bytesToUuid(id), keyId }
}
