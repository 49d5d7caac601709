/**
 * Builds the console and starts one Postgres for a run of the tests, with a migrated template database that each test file
 * clones. The server is embedded, with its data in a temporary folder. TEST_DATABASE_URL may name another server instead.
 * This server must be Postgres 15 or newer, and the login must be a superuser.
 */

import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { buildConsole } from '@keyward/console/build'
import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'
import {
  MANAGEMENT_LOGIN,
  onServer,
  SERVER_VARIABLE,
  TEMPLATE_VARIABLE,
  VALIDATOR_LOGIN,
  withDatabase,
} from '@keyward/testkit'

/** Settings that trade durability for speed, because the data is deleted after the run. */
const SETTINGS = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', max_connections: 300 }

export default async function setUp(): Promise<() => Promise<void>> {
  await buildConsole()
  const named = process.env['TEST_DATABASE_URL']
  const server = named === undefined ? await startEmbedded() : { url: named, stop: () => Promise.resolve() }
  const template = `keyward_template_${process.pid}_${Date.now().toString(36)}`
  await onServer(server.url, (client) => client.query(`create database ${template}`))
  await migrate(withDatabase(server.url, template))
  await onServer(server.url, async (client) => {
    await client.query(createLogin(VALIDATOR_LOGIN, 'keyward_validator'))
    await client.query(createLogin(MANAGEMENT_LOGIN, 'keyward_management'))
  })
  process.env[SERVER_VARIABLE] = server.url
  process.env[TEMPLATE_VARIABLE] = template
  return async () => {
    await onServer(server.url, (client) => client.query(`drop database if exists ${template} with (force)`))
    await server.stop()
  }
}

async function startEmbedded(): Promise<{ url: string; stop(): Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'keyward-test-'))
  const postgres = await startPostgres({ dataFolder: join(folder, 'data'), settings: SETTINGS })
  const stop = async (): Promise<void> => {
    await postgres.stop()
    await rm(folder, { recursive: true, force: true })
  }
  return { url: postgres.url, stop }
}

/** Returns a statement that creates a login, even if another run on the same server creates the same login concurrently. */
const createLogin = ({ user, password }: { user: string; password: string }, role: string): string => `do $$ begin
  if not exists (select from pg_roles where rolname = '${user}') then
    create role ${user} login password '${password}' in role ${role};
  end if;
exception when duplicate_object or unique_violation then null;
end $$`
