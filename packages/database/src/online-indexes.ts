/**
 * Indexes of large tables that are created after the migrations, without blocking the writers of the table. An index that is there and
 * valid costs one query. One that an interrupted run has left invalid is created again.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type pg from 'pg'

interface OnlineIndex {
  name: string
  definition: string
  /** Fills in what the index needs. Runs before the index exists, also again after an interruption. */
  before?: (client: pg.ClientBase) => Promise<void>
}

const INDEXES: readonly OnlineIndex[] = [
  {
    name: 'machines_by_machine_id',
    definition: 'machines (organization_id, machine_id, id)',
    before: fillOrganizationsOfMachines,
  },
  {
    name: 'machines_by_hostname',
    definition: `machines (organization_id, (lower(hostname) collate "C"), id) where hostname is not null`,
  },
  {
    name: 'licenses_by_expiry',
    definition: `licenses (organization_id, (coalesce(expires_at, 'infinity'::timestamptz)), id)`,
  },
]

/** The caller holds the lock of migrations, on a connection outside of a transaction. */
export async function createOnlineIndexes(client: pg.ClientBase): Promise<void> {
  for (const { name, definition, before } of INDEXES) {
    const { rows } = await client.query<{ valid: boolean }>(
      'select indisvalid as valid from pg_index where indexrelid = to_regclass($1)',
      [name],
    )
    if (rows[0]?.valid === true) continue
    await before?.(client)
    if (rows.length > 0) await client.query(`drop index concurrently ${name}`)
    await client.query(`create index concurrently ${name} on ${definition}`)
  }
}

const BATCH = 2_000
const RETRY_MS = 20

interface Place {
  license: string
  id: string
}

/**
 * Sets the organization of machines from before the column existed. A batch is a short transaction and waits for no lock; rows that
 * claims have locked are tried again.
 */
async function fillOrganizationsOfMachines(client: pg.ClientBase): Promise<void> {
  const zero = '00000000-0000-0000-0000-000000000000'
  for (let after: Place | undefined = { license: zero, id: zero }; after !== undefined;) {
    const next: Place | undefined = await lastOfBatch(client, after)
    while ((await fillBatch(client, after, next)) > 0) await sleep(RETRY_MS)
    after = next
  }
}

/** Returns the last machine of the batch after a place, or undefined when the rest is no more than a batch. */
async function lastOfBatch(client: pg.ClientBase, { license, id }: Place): Promise<Place | undefined> {
  const { rows } = await client.query<Place>(
    `select license_id as license, id from machines where (license_id, id) > ($1, $2) order by license_id, id offset ${BATCH} limit 1`,
    [license, id],
  )
  return rows[0]
}

/** Fills a batch, and returns how many rows it had to leave out. */
async function fillBatch(client: pg.ClientBase, after: Place, last: Place | undefined): Promise<number> {
  const range = `(license_id, id) > ($1, $2) ${last === undefined ? '' : 'and (license_id, id) <= ($3, $4)'}`
  const { rows } = await client.query<{ left: number }>(
    `with missing as (
       select license_id, id from machines where ${range} and organization_id is null
     ), free as (
       select license_id, id from machines where ${range} and organization_id is null for no key update skip locked
     ), filled as (
       update machines m set organization_id = l.organization_id
       from free f join licenses l on l.id = f.license_id
       where m.license_id = f.license_id and m.id = f.id
     )
     select ((select count(*) from missing) - (select count(*) from free))::integer as left`,
    [after.license, after.id, ...(last === undefined ? [] : [last.license, last.id])],
  )
  return rows[0]?.left ?? 0
}
