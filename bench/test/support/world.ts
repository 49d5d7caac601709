/** Fills a database with generated licenses in every state, and reads its rows as the world of the naive model. */

import { parseNetwork } from '@keyward/address'
import { uuidToBytes } from '@keyward/database'
import type { AccessRuleRecord, LicenseRecord, RuleKind, RuleScope } from '@keyward/engine'
import type { World } from '@keyward/engine/naive'
import { insertRule, type TestDatabase } from '@keyward/testkit'

import { fillDatabase } from '../../src/data/fill.ts'
import type { Shape } from '../../src/data/population.ts'

/**
 * The networks of additional rules. For each address family, they are in the order from the widest to the narrowest. Each address of
 * `ADDRESSES` is in at least one of them.
 */
const NETWORKS = ['198.51.0.0/16', '198.51.100.0/24', '198.51.100.7', '2001:db8::/32', '2001:db8:0:7::/64'] as const
export const ADDRESSES = [
  '198.51.100.7',
  '198.51.100.8',
  '198.51.7.7',
  '::ffff:198.51.100.7',
  '2001:db8:0:7::1',
  '2001:db8::9',
] as const
export const MACHINE = 'machine-with-rules'

/** Fills the database with licenses of every status and different machine limits, and with rules of every scope. */
export async function fillWorld(database: TestDatabase, shape: Shape): Promise<void> {
  await fillDatabase(database.url, shape)
  const { pool } = database
  const numbered = 'with n as (select id, row_number() over (order by id) as n from licenses)'
  const changes = [
    `status = 'suspended' from n where licenses.id = n.id and n % 5 = 1`,
    `status = 'revoked' from n where licenses.id = n.id and n % 25 = 2`,
    `expires_at = '2020-01-01T00:00:00.007Z' from n where licenses.id = n.id and n % 5 = 3 or licenses.id = n.id and n % 10 = 1`,
    `max_machines = null from n where licenses.id = n.id and n % 5 = 4 and n % 2 = 0`,
    `max_machines = 3 from n where licenses.id = n.id and n % 5 = 4 and n % 2 = 1`,
    `expires_at = null, policy_type = 'PERPETUAL' from n where licenses.id = n.id and n % 7 = 0`,
  ]
  for (const change of changes) await pool.query(`${numbered} update licenses set ${change}`)
  const { rows } = await pool.query<{ id: string; organization: string; product: string }>(
    'select id, organization_id as organization, product_id as product from licenses order by id limit 48',
  )
  for (const [n, license] of rows.entries()) {
    const scopes = [{}, { productId: license.product }, { licenseId: license.id }]
    const isExclusion = n % 3 === 0
    await insertRule(pool, {
      organizationId: license.organization,
      ...scopes[n % 4 === 0 ? 2 : n % 3],
      kind: isExclusion ? 'EXCLUSION' : 'BLACKLIST',
      allowSuspendedOrExpired: isExclusion && n % 2 === 0,
      ...(n % 8 === 7 ? { type: 'HWID', value: MACHINE } : { type: 'IP', value: NETWORKS[n % NETWORKS.length]! }),
      expiresAt: n % 11 === 5 ? new Date('2020-01-01') : null,
    })
  }
}

interface RuleRow {
  id: string
  organization: string
  kind: RuleKind
  type: 'IP' | 'HWID' | 'COUNTRY' | 'CUSTOMER'
  value: Buffer
  scope: RuleScope
  scopeId: string | null
  customer: string | null
  expiresAt: Date | null
  allows: boolean
}

export async function readWorld({ pool }: TestDatabase): Promise<World> {
  const licenses = await pool.query<{
    id: string
    organization: string
    product: string
    customer: string
    key: string
    status: LicenseRecord['status']
    expiresAt: Date | null
    maxMachines: number | null
    used: number
  }>(`select id, organization_id as organization, product_id as product, customer_id as customer, key, status,
             expires_at as "expiresAt", max_machines as "maxMachines", used
        from licenses join license_slots on license_id = id order by id`)
  const machines = await pool.query<{ license: string; machine: Buffer }>(
    'select license_id as license, machine_id as machine from machines',
  )
  const rules = await pool.query<RuleRow>(
    `select id, organization_id as organization, kind, type, value, scope, scope_id as "scopeId", customer_id as customer,
            expires_at as "expiresAt", allow_suspended_or_expired as allows from access_rules`,
  )
  return {
    products: [],
    licenses: licenses.rows.map((row) => ({
      id: uuidToBytes(row.id),
      organizationId: uuidToBytes(row.organization),
      productId: uuidToBytes(row.product),
      customerId: uuidToBytes(row.customer),
      key: Buffer.from(row.key),
      status: row.status,
      expiresAtMs: row.expiresAt?.getTime() ?? Infinity,
      maxMachines: row.maxMachines,
      used: row.used,
      entitlements: null,
      leaseSeconds: null,
      graceDays: null,
    })),
    machines: machines.rows.map(({ license, machine }) => ({ licenseId: uuidToBytes(license), machineId: machine })),
    rules: rules.rows.map(ruleRecord),
  }
}

function ruleRecord(row: RuleRow): AccessRuleRecord {
  const base = {
    id: uuidToBytes(row.id),
    organizationId: uuidToBytes(row.organization),
    kind: row.kind,
    mode: 'ENFORCE',
    scope: row.scope,
    scopeId: row.scopeId === null ? null : uuidToBytes(row.scopeId),
    expiresAtMs: row.expiresAt?.getTime() ?? Infinity,
    allowSuspendedOrExpired: row.allows,
  } as const
  switch (row.type) {
    case 'IP':
      return { ...base, type: 'IP', network: parseNetwork(row.value.toString())! }
    case 'HWID':
      return { ...base, type: 'HWID', machineId: row.value }
    case 'COUNTRY':
      return { ...base, type: 'COUNTRY', country: row.value.toString() }
    case 'CUSTOMER':
      return { ...base, type: 'CUSTOMER', customerId: uuidToBytes(row.customer!) }
    default:
      return row.type satisfies never
  }
}
