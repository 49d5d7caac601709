/**
 * Changes large tables after the migrations: fills in columns, validates constraints and creates indexes. No step blocks readers or writers
 * of a table for longer than a short batch takes. A step is recorded when it is done, so an interrupted step is repeated.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type pg from 'pg'

type Step = (client: pg.ClientBase) => Promise<void>

const INDEXES: Readonly<Record<string, string>> = {
  // 0024
  licenses_entitlements: 'licenses (product_id, octet_length(entitlements::text)) where entitlements is not null',
  // 0025
  access_rules_monitored: `access_rules (organization_id, id) where mode = 'MONITOR'`,
  access_rules_set: 'access_rules (organization_id, set_id, id) where set_id is not null',
  access_rule_counters_count: 'access_rule_counters (organization_id, match_count, rule_id)',
  access_rule_counters_match: `access_rule_counters (organization_id, (coalesce(last_matched_at, '-infinity'::timestamptz)), rule_id)`,
  licenses_key_search: `licenses (organization_id, (upper(replace(key, ' ', '')) collate "C"))`,
  customers_search: 'customers using gin (organization_id, customer_text(email, name, external_id) gin_trgm_ops)',
  audit_log_action: 'audit_log (organization_id, action, id)',
  audit_log_resource_type: 'audit_log (organization_id, resource_type, id)',
  audit_log_resource: 'audit_log (organization_id, resource_id, id) where resource_id is not null',
  audit_log_actor: `audit_log (organization_id, (actor ->> 'id'), id)`,
  alerts_unacknowledged: 'alerts (organization_id, id) where acknowledged_at is null',
  // 0026
  licenses_not_started: 'licenses (id) where duration_days is not null and expires_at is null',
  licenses_leased: 'licenses (id) where lease_seconds is not null and max_machines is not null',
  machines_leases: 'machines (license_id, lease_ends_at) where lease_ends_at is not null',
  // 0034
  licenses_by_expiry: 'licenses (expires_at) where expires_at is not null',
  // 0036
  machines_by_machine_id: 'machines (organization_id, machine_id, id)',
  machines_by_hostname: 'machines (organization_id, (lower(hostname) collate "C"), id) where hostname is not null',
  licenses_listed_by_expiry: `licenses (organization_id, (coalesce(expires_at, 'infinity'::timestamptz)), id)`,
  // 0038
  members_by_email: 'members (lower(email))',
  // 0046
  alerts_endpoint: 'alerts (endpoint_id) where endpoint_id is not null',
}

/** The steps by name, in the order in which they run. */
const STEPS: ReadonlyMap<string, Step> = new Map([
  ['fill access_rule_counters', (client: pg.ClientBase) => fillOrganizations(client, COUNTERS)],
  ['fill machines', (client: pg.ClientBase) => fillOrganizations(client, MACHINES)],
  ['fill used_licenses', fillUsedLicenses],
  ...Object.entries(INDEXES).map(([name, definition]): [string, Step] => [
    `index ${name}`,
    (client) => createIndex(client, name, definition),
  ]),
])

/** Runs the steps that have not been recorded. The caller holds the lock of migrations, on a connection without an open transaction. */
export async function runOnlineSteps(client: pg.ClientBase): Promise<void> {
  await client.query(
    'create table if not exists online_steps (name text primary key, done_at timestamptz not null default now())',
  )
  // If the server crashes before a commit is on disk, the next run repeats the step.
  await client.query('set synchronous_commit = off')
  await validateConstraints(client)
  const { rows } = await client.query<{ name: string }>('select name from online_steps')
  const done = new Set(rows.map(({ name }) => name))
  for (const [name, step] of STEPS) {
    if (done.has(name)) continue
    await step(client)
    await client.query('insert into online_steps (name) values ($1)', [name])
  }
  await client.query('reset synchronous_commit')
}

async function createIndex(client: pg.ClientBase, name: string, definition: string): Promise<void> {
  const { rows } = await client.query<{ valid: boolean }>(
    'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
    [name],
  )
  if (rows[0]?.valid === true) return
  // An interrupted run leaves an invalid index.
  if (rows.length > 0) await client.query(`drop index concurrently ${name}`)
  // An empty table, as in a new database, gets a plain index, because that is faster.
  const [table = ''] = definition.split(' ')
  const isEmpty = (await client.query(`select from ${table} limit 1`)).rowCount === 0
  await client.query(`create index ${isEmpty ? '' : 'concurrently'} ${name} on ${definition}`)
}

/** Validates the constraints that migrations added as `not valid`. Writers continue meanwhile. */
async function validateConstraints(client: pg.ClientBase): Promise<void> {
  const { rows } = await client.query<{ statement: string }>(
    `select format('alter table %s validate constraint %I', conrelid::regclass, conname) as statement
     from pg_constraint where not convalidated and connamespace = current_schema()::regnamespace and contype in ('c', 'f')
     order by conrelid, conname`,
  )
  for (const { statement } of rows) await client.query(statement)
}

const BATCH = 2_000
const RETRY_MS = 20

/** A table whose column `organization_id` is copied from the parent. Rows that are older than the column contain null. */
interface Fill {
  table: string
  key: readonly string[]
  parent: string
  reference: string
}

const MACHINES: Fill = { table: 'machines', key: ['license_id', 'id'], parent: 'licenses', reference: 'license_id' }
const COUNTERS: Fill = {
  table: 'access_rule_counters',
  key: ['rule_id'],
  parent: 'access_rules',
  reference: 'rule_id',
}

/** Fills in `organization_id` in batches. Each batch is a short transaction that skips locked rows. Skipped rows are tried again. */
async function fillOrganizations(client: pg.ClientBase, fill: Fill): Promise<void> {
  let after: string[] | undefined = fill.key.map(() => '00000000-0000-0000-0000-000000000000')
  while (after !== undefined) {
    const last = await lastOfBatch(client, fill, after)
    while ((await fillBatch(client, fill, after, last)) > 0) await sleep(RETRY_MS)
    after = last
  }
}

/** Returns the key of the last row in the batch that follows the key `after`, or undefined if at most one batch is left. */
async function lastOfBatch(
  client: pg.ClientBase,
  { table, key }: Fill,
  after: readonly string[],
): Promise<string[] | undefined> {
  const columns = key.join(', ')
  const places = key.map((_, i) => `$${i + 1}`).join(', ')
  const { rows } = await client.query<Record<string, string>>(
    `select ${columns} from ${table} where (${columns}) > (${places}) order by ${columns} offset ${BATCH} limit 1`,
    [...after],
  )
  const [row] = rows
  return row && key.map((column) => row[column] ?? '')
}

/**
 * Fills in the rows after the key `after`, up to and including the key `last` if given. Returns the number of locked rows, which were
 * skipped.
 */
async function fillBatch(
  client: pg.ClientBase,
  { table, key, parent, reference }: Fill,
  after: readonly string[],
  last: readonly string[] | undefined,
): Promise<number> {
  const columns = key.join(', ')
  const places = (from: number): string => key.map((_, i) => `$${from + i + 1}`).join(', ')
  const range = `(${columns}) > (${places(0)}) ${last === undefined ? '' : `and (${columns}) <= (${places(key.length)})`}`
  const { rows } = await client.query<{ locked: number }>(
    `with missing as (
       select ${columns} from ${table} where ${range} and organization_id is null
     ), free as (
       select ${columns} from ${table} where ${range} and organization_id is null for no key update skip locked
     ), filled as (
       update ${table} t set organization_id = p.organization_id
       from free f join ${parent} p on p.id = f.${reference}
       where ${key.map((column) => `t.${column} = f.${column}`).join(' and ')}
     )
     select ((select count(*) from missing) - (select count(*) from free))::integer as locked`,
    [...after, ...(last ?? [])],
  )
  return rows[0]?.locked ?? 0
}

/** Records the licenses that were used before events about the first use existed. */
async function fillUsedLicenses(client: pg.ClientBase): Promise<void> {
  let after: string | undefined = '00000000-0000-0000-0000-000000000000'
  while (after !== undefined) {
    const { rows }: pg.QueryResult<{ last: string | null }> = await client.query(
      `with batch as (
         select license_id, used > 0 or unrecorded > 0 as is_used from license_slots
         where license_id > $1 order by license_id limit ${BATCH}
       ), noted as (
         insert into used_licenses (license_id) select license_id from batch where is_used on conflict do nothing
       )
       select (select license_id from batch order by license_id desc limit 1) as last`,
      [after],
    )
    after = rows[0]?.last ?? undefined
  }
}
