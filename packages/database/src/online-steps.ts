/**
 * Changes large tables after the migrations: validates constraints and creates indexes. No step blocks readers or writers of a table for
 * longer than a short batch takes. A step is recorded when it is done, so an interrupted step is repeated.
 */

import type pg from 'pg'

import { isRetryable } from './errors.ts'

type Step = (client: pg.ClientBase) => Promise<void>

/** The steps by name, in the order in which they run. A step that fills in a column works in batches and skips locked rows. */
const STEPS: ReadonlyMap<string, Step> = new Map<string, Step>([
  ['count orders', countUsage],
  // Rows without metadata are not in these indexes, so their insertion costs the same as without the indexes.
  indexStep('licenses_metadata', `licenses using gin (metadata jsonb_path_ops) where metadata <> '{}'`),
  indexStep('customers_metadata', `customers using gin (metadata jsonb_path_ops) where metadata <> '{}'`),
  indexStep('credentials_expiry', 'credentials (expires_at) where expires_at is not null'),
  indexStep('alerts_connection', 'alerts (connection_id) where connection_id is not null'),
  indexStep('order_references_order', 'order_references (organization_id, provider, order_id)'),
  ['files of leased licenses', unsetFileDays],
])

/** Counts the usage of all quotas again. A transaction that folds a counter meanwhile makes the count fail, and then it is repeated. */
async function countUsage(client: pg.ClientBase): Promise<void> {
  for (;;) {
    await client.query('begin isolation level repeatable read')
    try {
      await client.query('select recount_usage()')
      await client.query('commit')
      return
    } catch (error) {
      await client.query('rollback').catch(() => undefined)
      if (!isRetryable(error)) throw error
    }
  }
}

/** Removes the former default of `file_days` from licenses with leases, whose files then end with the lease. */
async function unsetFileDays(client: pg.ClientBase): Promise<void> {
  for (let after = '00000000-0000-0000-0000-000000000000'; ;) {
    const { rows }: { rows: { id: string }[] } = await client.query(
      `with part as (select id from licenses where id > $1 order by id limit 10000),
        found as (select l.id from licenses l join part using (id) where l.lease_seconds is not null and l.file_days = 30
          order by l.id for no key update of l),
        changed as (update licenses l set file_days = null from found where l.id = found.id)
      select id from part order by id desc limit 1`,
      [after],
    )
    if (rows[0] === undefined) return
    after = rows[0].id
  }
}

/** Returns the step that creates the index `name` with a definition such as `licenses (organization_id, id)`. */
export function indexStep(name: string, definition: string): [string, Step] {
  return [`index ${name}`, (client) => createIndex(client, name, definition)]
}

/** Runs the steps that have not been recorded. The caller holds the lock of migrations, on a connection without an open transaction. */
export async function runOnlineSteps(client: pg.ClientBase, steps = STEPS): Promise<void> {
  await client.query(
    'create table if not exists online_steps (name text primary key, done_at timestamptz not null default now())',
  )
  // If the server crashes before a commit is on disk, the next run repeats the step.
  await client.query('set synchronous_commit = off')
  await validateConstraints(client)
  const { rows } = await client.query<{ name: string }>('select name from online_steps')
  const done = new Set(rows.map(({ name }) => name))
  for (const [name, step] of steps) {
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
