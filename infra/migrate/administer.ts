/**
 * Prepares a Postgres server with the login of its administrator, before a migration: creates the owner of the tables, its database, and
 * the group roles of the services. The owner is not a superuser and may not create roles. An attacker with the owner's permissions
 * therefore controls one database, but not the server.
 */

import { createPool } from '@keyward/database'
import { ConfigError } from '@keyward/runtime'

import { restrictFunctions, runFormatted } from '../shared/logins.ts'
import { scramVerifier } from '../shared/scram.ts'

const GROUP_ROLES = ['keyward_validator', 'keyward_management']

/** The time to wait for the lock of a table that a service uses. */
const LOCK_TIMEOUT = '10s'

type Client = Parameters<typeof runFormatted>[0]

/**
 * Creates the group roles, and the user and the database that `ownerUrl` names, unless they exist. Makes that user the owner of all tables,
 * views and functions, also of those that belong to another user, such as the superuser of earlier installations. Revokes functions that
 * no login of a validator needs. Returns a sentence per change. Throws ConfigError if the owner is the administrator itself.
 */
export async function prepareDatabase(adminUrl: string, ownerUrl: string): Promise<string[]> {
  const { owner, password, database } = parseOwner(ownerUrl)
  if (decodeURIComponent(new URL(adminUrl).username) === owner)
    throw new ConfigError(
      'KEYWARD_DATABASE_URL must name another user than KEYWARD_ADMIN_DATABASE_URL, because the owner must not be an administrator',
    )
  const done: string[] = []
  await withConnection(adminUrl, async (client) => {
    for (const role of GROUP_ROLES)
      if (!(await exists(client, 'pg_roles', 'rolname', role)))
        await runFormatted(client, 'create role %I nologin', role)
    if (!(await exists(client, 'pg_roles', 'rolname', owner))) {
      await runFormatted(client, 'create role %I login', owner)
      done.push(`Created role ${owner}, the owner of the tables.`)
    }
    if (password !== '') await runFormatted(client, 'alter role %I password %L', owner, scramVerifier(password))
    if (await exists(client, 'pg_database', 'datname', database)) return
    await runFormatted(client, 'create database %I owner %I', database, owner)
    done.push(`Created database ${database}.`)
  })
  const inDatabase = new URL(adminUrl)
  inDatabase.pathname = `/${encodeURIComponent(database)}`
  await withConnection(inDatabase.href, async (client) => {
    const moved = await handOver(client, database, owner)
    if (moved > 0) done.push(`Handed ${moved} objects over to ${owner}.`)
    await restrictFunctions(client)
  })
  return done
}

function parseOwner(ownerUrl: string): { owner: string; password: string; database: string } {
  const { username, password, pathname } = new URL(ownerUrl)
  const [owner, database] = [decodeURIComponent(username), decodeURIComponent(pathname.slice(1))]
  if (owner === '' || database === '')
    throw new ConfigError(
      'KEYWARD_DATABASE_URL must contain a user and a database, because KEYWARD_ADMIN_DATABASE_URL is set',
    )
  return { owner, password: decodeURIComponent(password), database }
}

/** Runs `work` with one connection. A pool would replace a broken connection, also in the middle of a transaction. */
async function withConnection(url: string, work: (client: Client) => Promise<void>): Promise<void> {
  const pool = createPool(url, { name: 'keyward migrate', max: 1, statementTimeoutMs: 60_000 })
  try {
    const client = await pool.connect()
    await work(client).finally(() => client.release(true))
  } finally {
    await pool.end()
  }
}

async function exists(client: Client, catalog: string, column: string, name: string): Promise<boolean> {
  return ((await client.query(`select from ${catalog} where ${column} = $1`, [name])).rowCount ?? 0) > 0
}

/**
 * Selects the statements that change the owner of each table, sequence, view and function of the schema `public` that belongs to another
 * user and to no extension. A sequence that belongs to a column changes its owner with the table. Partitions are tables.
 */
const FOREIGN_OBJECTS = `
  select format('alter %s %s owner to %I', case c.relkind when 'S' then 'sequence' when 'v' then 'view'
    when 'm' then 'materialized view' else 'table' end, c.oid::regclass, $1::text) as statement
  from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'S', 'v', 'm')
    and pg_get_userbyid(c.relowner) <> $1
    and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
      and d.deptype in ('e', 'a', 'i') and (d.deptype = 'e' or c.relkind = 'S'))
  union all
  select format('alter routine %s owner to %I', p.oid::regprocedure, $1::text) from pg_proc p
  where p.pronamespace = 'public'::regnamespace and pg_get_userbyid(p.proowner) <> $1
    and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')`

async function handOver(client: Client, database: string, owner: string): Promise<number> {
  await client.query('begin')
  await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`)
  const { rows: databases } = await client.query(
    'select from pg_database where datname = $1 and pg_get_userbyid(datdba) <> $2',
    [database, owner],
  )
  if (databases.length > 0) await runFormatted(client, 'alter database %I owner to %I', database, owner)
  // Since Postgres 15, the schema `public` belongs to the owner of the database, unless the database comes from an older server.
  const { rows: schemas } = await client.query(
    `select from pg_namespace where nspname = 'public' and pg_get_userbyid(nspowner) not in ('pg_database_owner', $1)`,
    [owner],
  )
  if (schemas.length > 0) await runFormatted(client, 'alter schema public owner to %I', owner)
  const { rows } = await client.query<{ statement: string }>(FOREIGN_OBJECTS, [owner])
  for (const { statement } of rows) await client.query(statement)
  await client.query('commit')
  return rows.length
}
