/**
 * Tests the query plans of lists and cascades over many rows. A statement must not read all rows of its organization, or rows of other
 * organizations.
 */

import { type Database, uuidv7 } from '@keyward/database'
import {
  createTestDatabase,
  insertCustomer,
  insertOrganization,
  insertProduct,
  type TestDatabase,
} from '@keyward/testkit'
import { CamelCasePlugin, type CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { ReadContext, WriteContext } from '../../src/context.ts'
import { updateRules } from '../../src/resources/access-rule-sets/replace.ts'
import { findExisting, type NewRule } from '../../src/resources/access-rules/add.ts'
import { listRules, type RuleQuery } from '../../src/resources/access-rules/list.ts'
import { type AuditQuery, listEntries } from '../../src/resources/audit-log/audit-log.ts'
import { type LicenseQuery, listLicenses } from '../../src/resources/licenses/list.ts'
import { findMachines, type MachineQuery } from '../../src/resources/machines/machines.ts'
import { searchCustomers, searchLicenses, searchMachines } from '../../src/search/search.ts'

const ROWS = 60_000
/** The difference between the numbers of two rows with the same rare value. Each rare status, kind or type has 20 rows. */
const RARE = 3_000

let database: TestDatabase
let context: ReadContext
let other: string
let product: string
let customer: string
let rareProduct: string
const sent: CompiledQuery[] = []

async function fill(organizationId: string): Promise<{ product: string; customer: string; rareProduct: string }> {
  const { pool } = database
  const common = await insertProduct(pool, { organizationId })
  const rare = await insertProduct(pool, { organizationId })
  const owner = await insertCustomer(pool, { organizationId })
  const client = await pool.connect()
  try {
    // Disables triggers, which would write a log entry for each row.
    await client.query('set session_replication_role = replica')
    await client.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, status, policy_type, expires_at)
       select ('00000000-0000-7000-8000-' || right($1::uuid::text, 4) || lpad(to_hex(i), 8, '0'))::uuid, $1,
         case i % ${RARE} when 4 then $3::uuid else $2::uuid end, $4::uuid, 'key ' || i,
         case i % ${RARE} when 1 then 'suspended' when 2 then 'revoked' else 'active' end, 'SUBSCRIPTION',
         now() + case i % ${RARE} when 3 then interval '-1 day' else interval '1 day' end
       from generate_series(1, ${ROWS}) i`,
      [organizationId, common, rare, owner],
    )
    await client.query(`insert into license_slots (license_id) select id from licenses where organization_id = $1`, [
      organizationId,
    ])
    await client.query(
      `insert into machines (id, license_id, organization_id, machine_id, hostname)
       select ('00000000-0000-7000-8004-' || right(id::text, 12))::uuid, id, $1, convert_to('machine of ' || key, 'UTF8'), 'Host of ' || key
       from licenses where organization_id = $1`,
      [organizationId],
    )
    await client.query(
      `insert into access_rules (id, organization_id, kind, type, value, scope, product_id, expires_at, created_by)
       select ('00000000-0000-7000-8001-' || right($1::uuid::text, 4) || lpad(to_hex(i), 8, '0'))::uuid, $1,
         case i % ${RARE} when 1 then 'EXCLUSION' else 'BLACKLIST' end, case i % ${RARE} when 2 then 'COUNTRY' else 'HWID' end,
         convert_to('machine ' || i, 'UTF8'), case i % ${RARE} when 3 then 'PRODUCT' else 'ORGANIZATION' end,
         case i % ${RARE} when 3 then $2::uuid end,
         now() + case i % ${RARE} when 4 then interval '-1 day' else interval '1 day' end, '{"type":"OPERATOR"}'
       from generate_series(1, ${ROWS}) i`,
      [organizationId, rare],
    )
    await client.query(
      `insert into access_rule_sets (id, organization_id, name) values (gen_random_uuid(), $1, 'feed')`,
      [organizationId],
    )
    await client.query(
      `update access_rules set set_id = (select id from access_rule_sets where organization_id = $1),
         mode = case when id::text like '%7' then 'ENFORCE' else 'MONITOR' end
       where organization_id = $1 and value = any (select convert_to('machine ' || 100 * i, 'UTF8') from generate_series(1, 20) i)`,
      [organizationId],
    )
    await client.query(
      `insert into access_rule_counters (rule_id, organization_id, match_count, last_matched_at)
       select id, organization_id, row_number() over (), now() from access_rules where organization_id = $1`,
      [organizationId],
    )
    await client.query(
      `insert into audit_log (id, organization_id, at, actor, action, resource_type, resource_id)
       select ('00000000-0000-7000-8002-' || right($1::uuid::text, 4) || lpad(to_hex(i), 8, '0'))::uuid, $1, to_timestamp(i),
         jsonb_build_object('type', 'MANAGEMENT_TOKEN', 'id', case i % ${RARE} when 1 then $2::uuid else $1 end),
         case i % ${RARE} when 2 then 'rare.action' else 'license.changed' end,
         case i % ${RARE} when 3 then 'rare' else 'license' end, case i % ${RARE} when 4 then $2::uuid else $1 end
       from generate_series(1, ${ROWS}) i`,
      [organizationId, rare],
    )
    await client.query(
      `insert into customers (id, organization_id, email)
       select ('00000000-0000-7000-8003-' || right($1::uuid::text, 4) || lpad(to_hex(i), 8, '0'))::uuid, $1,
         'customer ' || ${ROWS} - i || '@example.com'
       from generate_series(0, ${ROWS}) i`,
      [organizationId],
    )
    await client.query(
      `insert into alerts (id, organization_id, license_id, count, first_at, last_at, acknowledged_at)
       select gen_random_uuid(), $1, id, 1, now(), now(), now() from licenses where organization_id = $1`,
      [organizationId],
    )
    await client.query(
      `insert into check_counts (hour, organization_id, product_id, code, count)
       select date_trunc('hour', now()) - make_interval(hours => i % 24), $1, gen_random_uuid(), 'VALID', 1
       from generate_series(1, 20000) i`,
      [organizationId],
    )
  } finally {
    await client.query('reset session_replication_role')
    client.release()
  }
  return { product: common, customer: owner, rareProduct: rare }
}

beforeAll(async () => {
  database = await createTestDatabase()
  const organizationId = await insertOrganization(database.pool)
  other = await insertOrganization(database.pool)
  await database.pool.query(`select ensure_partition('check_counts', now() - interval '1 day')`)
  await fill(other)
  ;({ product, customer, rareProduct } = await fill(organizationId))
  await database.pool.query('analyze')
  const db = new Kysely<Database>({
    dialect: new PostgresDialect({ pool: database.pool }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
    log: (event) => void sent.push(event.query),
  })
  context = { db, organizationId }
}, 120_000)
afterAll(() => database.drop())

interface Plan {
  'Node Type': string
  'Relation Name'?: string | undefined
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number | undefined
  'Rows Removed by Join Filter'?: number | undefined
  Plans?: Plan[] | undefined
}
const plan: z.ZodType<Plan> = z.object({
  'Node Type': z.string(),
  'Relation Name': z.string().optional(),
  'Actual Rows': z.number(),
  'Actual Loops': z.number(),
  'Rows Removed by Filter': z.number().optional(),
  'Rows Removed by Join Filter': z.number().optional(),
  get Plans() {
    return z.array(plan).optional()
  },
})
const explained = z.array(z.object({ 'QUERY PLAN': z.array(z.object({ Plan: plan })) }))

interface Cost {
  /** The maximum number of rows that one node of the query plan returned or removed. */
  rows: number
  /** The large tables that were scanned sequentially. */
  scanned: string[]
}

const LARGE = [
  'audit_log',
  'customers',
  'licenses',
  'license_slots',
  'machines',
  'access_rules',
  'access_rule_counters',
  'alerts',
  'check_counts',
]

function costOf(node: Plan): Cost {
  const below = (node.Plans ?? []).map(costOf)
  const removed = (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Join Filter'] ?? 0)
  const own = (node['Actual Rows'] + removed) * node['Actual Loops']
  const table = node['Relation Name'] ?? ''
  const isScanned =
    node['Node Type'].includes('Seq Scan') && LARGE.some((name) => table.startsWith(name)) && own > 1_000
  return {
    rows: Math.max(own, ...below.map(({ rows }) => rows)),
    scanned: [...(isScanned ? [table] : []), ...below.flatMap(({ scanned }) => scanned)],
  }
}

async function explain(text: string, values: readonly unknown[]): Promise<Cost> {
  const client = await database.pool.connect()
  try {
    await client.query('begin')
    const { rows } = await client.query(`explain (analyze, format json) ${text}`, [...values])
    const [first] = explained.parse(rows)
    return costOf(first!['QUERY PLAN'][0]!.Plan)
  } finally {
    await client.query('rollback')
    client.release()
  }
}

async function costOfList(run: () => Promise<unknown>): Promise<Cost> {
  sent.length = 0
  await run()
  const [query] = sent
  if (!query) throw new Error('The list sent no statement')
  return explain(query.sql, query.parameters)
}

const licenseFilters: [string, () => Partial<LicenseQuery>][] = [
  ['none', () => ({})],
  ['status=active', () => ({ status: 'active' })],
  ['status=suspended', () => ({ status: 'suspended' })],
  ['status=revoked', () => ({ status: 'revoked' })],
  ['status=expired', () => ({ status: 'expired' })],
  ['status=grace', () => ({ status: 'grace' })],
  ['productId', () => ({ productId: rareProduct })],
  ['productId, status=revoked', () => ({ productId: product, status: 'revoked' })],
  ['customerId', () => ({ customerId: customer })],
  ['customerId, status=expired', () => ({ customerId: customer, status: 'expired' })],
  ['key', () => ({ key: 'key 7' })],
  ['keyPrefix', () => ({ keyPrefix: 'KEY 5999' })],
  ['email', () => ({ email: 'customer 7@example.com' })],
  ['expiresBefore, rare', () => ({ expiresBefore: new Date(Date.now() - 3_600_000) })],
  ['expiresBefore, common', () => ({ expiresBefore: new Date(Date.now() + 7 * 86_400_000) })],
  ['expiresAfter without a match', () => ({ expiresAfter: new Date(Date.now() + 7 * 86_400_000) })],
  ['sort=expiresAt', () => ({ sort: 'expiresAt' })],
  ['sort=expiresAt, order=desc', () => ({ sort: 'expiresAt', order: 'desc' })],
  ['sort=expiresAt and expiresAfter', () => ({ sort: 'expiresAt', expiresAfter: new Date() })],
  ['sort=expiresAt and status=suspended', () => ({ sort: 'expiresAt', status: 'suspended' })],
  ['sort=expiresAt and productId', () => ({ sort: 'expiresAt', productId: rareProduct })],
  ['order=asc', () => ({ order: 'asc' })],
]

test.each(licenseFilters)('reads few rows to list licenses by %s', async (_, filter) => {
  const { rows, scanned } = await costOfList(() => listLicenses(context, { limit: 50, ...filter() }))
  expect(scanned).toEqual([])
  expect(rows).toBeLessThan(500)
})

test.each<[string, MachineQuery]>([
  ['none', { limit: 50 }],
  ['machineId', { limit: 50, machineId: 'machine of key 7' }],
  ['hostname', { limit: 50, hostname: 'HOST of key 7' }],
])('reads few rows to list machines by %s', async (_, query) => {
  const { rows, scanned } = await costOfList(() => findMachines(context, query))
  expect(scanned).toEqual([])
  expect(rows).toBeLessThan(500)
})

test.each([
  ['machine of key 777', 10],
  ['HOST of key 777', 10],
  ['machine of', 10],
  ['nothing', 0],
])('reads few rows to search machines by %s', async (q, expected) => {
  sent.length = 0
  expect(await searchMachines(context, q)).toHaveLength(expected)
  for (const query of sent) {
    const { rows, scanned } = await explain(query.sql, query.parameters)
    expect(scanned).toEqual([])
    expect(rows).toBeLessThan(2_000)
  }
})

const ruleFilters: [string, () => Partial<RuleQuery>][] = [
  ['none', () => ({})],
  ['kind', () => ({ kind: 'EXCLUSION' })],
  ['type', () => ({ type: 'COUNTRY' })],
  ['scope', () => ({ scope: 'PRODUCT' })],
  ['kind and scope without a match', () => ({ kind: 'EXCLUSION', scope: 'LICENSE' })],
  ['value', () => ({ value: 'machine 7' })],
  ['scopeId', () => ({ scopeId: rareProduct })],
  ['mode', () => ({ mode: 'MONITOR' })],
  ['mode and kind', () => ({ mode: 'ENFORCE', kind: 'BLACKLIST' })],
  ['set', () => ({ set: 'feed' })],
  ['matches', () => ({ matches: 'machine 7' })],
  ['matches, an address', () => ({ matches: '192.0.2.7' })],
  ['matches, an IPv6 address', () => ({ matches: '2001:db8::7' })],
  ['sort=matchCount', () => ({ sort: 'matchCount' })],
  ['sort=matchCount, order=asc', () => ({ sort: 'matchCount', order: 'asc' })],
  ['sort=lastMatchedAt', () => ({ sort: 'lastMatchedAt' })],
  ['sort=matchCount and kind', () => ({ sort: 'matchCount', kind: 'BLACKLIST' })],
  ['sort=matchCount and matches', () => ({ sort: 'matchCount', matches: 'machine 7' })],
  ['sort=createdAt, order=asc', () => ({ order: 'asc' })],
  ['expired=true', () => ({ expired: true })],
  ['expired=false', () => ({ expired: false })],
]

test.each(ruleFilters)('reads few rows to list access rules by %s', async (_, filter) => {
  const { rows, scanned } = await costOfList(() => listRules(context, { limit: 50, ...filter() }))
  expect(scanned).toEqual([])
  expect(rows).toBeLessThan(1_000)
})

const auditFilters: [string, () => Partial<AuditQuery>][] = [
  ['none', () => ({})],
  ['action', () => ({ action: 'rare.action' })],
  ['resourceType', () => ({ resourceType: 'rare' })],
  ['resourceId', () => ({ resourceId: rareProduct })],
  ['actorId', () => ({ actorId: rareProduct })],
  ['from', () => ({ from: new Date(Date.now() - 60_000) })],
  ['to', () => ({ to: new Date(Date.now() - 86_400_000) })],
]

test.each(auditFilters)('reads few rows to list audit entries by %s', async (_, filter) => {
  const { rows, scanned } = await costOfList(() => listEntries(context, { limit: 50, ...filter() }))
  expect(scanned).toEqual([])
  expect(rows).toBeLessThan(500)
})

test.each(['key 7', 'KEY59', 'nothing'])('reads few rows to search licenses by %s', async (q) => {
  const { rows, scanned } = await costOfList(() => searchLicenses(context, q))
  expect(scanned).toEqual([])
  expect(rows).toBeLessThan(20_000)
})

test('searches the newest customers first, and then the index', async () => {
  sent.length = 0
  expect(await searchCustomers(context, 'customer 59999@')).toHaveLength(1)
  for (const query of sent) {
    const { rows, scanned } = await explain(query.sql, query.parameters)
    expect(scanned).toEqual([])
    expect(rows).toBeLessThan(3_000)
  }
})

test('counts checks without reading the counts of other organizations', async () => {
  const { scanned } = await explain(
    `select sum(count) from check_counts where organization_id = $1 and hour >= now() - interval '1 hour' and hour < now()`,
    [context.organizationId],
  )
  expect(scanned).toEqual([])
})

test('deletes the alerts of a license without reading other alerts', async () => {
  const { rows, scanned } = await explain('delete from alerts where license_id = $1', [
    (await listLicenses(context, { limit: 1 })).data[0]?.id,
  ])
  expect(scanned).toEqual([])
  expect(rows).toBeLessThan(10)
})

test('returns no rule for an impossible combination of kind and type', async () => {
  const page = await listRules(context, { limit: 50, kind: 'EXCLUSION', type: 'COUNTRY' })
  expect(page).toEqual({ data: [], nextCursor: null })
})

test('returns every rule when the whole list is read in pages', async () => {
  for (const filter of [{ kind: 'EXCLUSION' }, { scope: 'PRODUCT' }, { type: 'COUNTRY', kind: 'BLACKLIST' }] as const) {
    const all = await listRules(context, { limit: 100, ...filter })
    const ids: string[] = []
    let cursor: string | undefined
    do {
      const page = await listRules(context, { limit: 7, cursor, ...filter })
      ids.push(...page.data.map(({ id }) => id))
      cursor = page.nextCursor ?? undefined
    } while (cursor !== undefined)
    expect(all.data).toHaveLength(ROWS / RARE)
    expect(ids).toEqual(all.data.map(({ id }) => id))
    expect(ids).toEqual(ids.toSorted().toReversed())
  }
})

describe('in an organization that the statistics do not contain', () => {
  const RULES = 20_000
  let unseen: WriteContext
  let productId: string

  beforeAll(async () => {
    const { pool } = database
    const organizationId = await insertOrganization(pool)
    unseen = { ...context, organizationId, actor: { type: 'OPERATOR' } }
    productId = await insertProduct(pool, { organizationId })
    const client = await pool.connect()
    await client.query('set session_replication_role = replica')
    await client.query(
      `insert into access_rules (id, organization_id, kind, type, value, scope, product_id, created_by)
       select gen_random_uuid(), $1, 'BLACKLIST', 'HWID', convert_to('new ' || i, 'UTF8'), scope, product, '{"type":"OPERATOR"}'
       from generate_series(1, ${RULES}) i, (values ('ORGANIZATION', null), ('PRODUCT', $2::uuid)) as s (scope, product)`,
      [organizationId, productId],
    )
    await client.query(
      `insert into access_rule_counters (rule_id, organization_id) select id, organization_id from access_rules where organization_id = $1`,
      [organizationId],
    )
    client.release(true)
  })

  const rulesOf = (scope: 'ORGANIZATION' | 'PRODUCT'): NewRule[] =>
    Array.from({ length: 500 }, (_, i) => ({
      id: uuidv7(),
      kind: 'BLACKLIST',
      type: 'HWID',
      value: `new ${i + 1}`,
      scope,
      scopeId: scope === 'PRODUCT' ? productId : null,
      set: null,
      mode: 'ENFORCE',
      note: null,
      expiresAt: null,
      allowSuspendedOrExpired: false,
      pointer: '',
    }))

  test.each(['ORGANIZATION', 'PRODUCT'] as const)(
    'reads few rows to find existing rules like %s rules',
    async (scope) => {
      const { rows, scanned } = await costOfList(async () => {
        expect(await findExisting(unseen, rulesOf(scope))).toHaveLength(500)
      })
      expect(scanned).toEqual([])
      expect(rows).toBeLessThan(2_000)
    },
  )

  test('reads few rows to update rules', async () => {
    const stored = await database.pool.query<{ id: string }>(
      'select id from access_rules where organization_id = $1 limit 500',
      [unseen.organizationId],
    )
    const rules = rulesOf('ORGANIZATION').map((rule, i) => Object.assign(rule, stored.rows[i]))
    const { rows, scanned } = await costOfList(() => updateRules(unseen, rules))
    expect(scanned).toEqual([])
    expect(rows).toBeLessThan(2_000)
  })

  test.each([
    { sort: 'matchCount', matches: '2001:db8::7' },
    { matches: '2001:db8::7' },
    { scopeId: true },
    { sort: 'lastMatchedAt', kind: 'BLACKLIST' },
  ] as const)('reads few rows to list access rules by %o', async (filter) => {
    const query = 'scopeId' in filter ? { scopeId: productId } : filter
    const { rows } = await costOfList(() => listRules(unseen, { limit: 50, ...query }))
    expect(rows).toBeLessThan(1_500)
  })
})
