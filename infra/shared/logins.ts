/**
 * Creates the login roles of the services. Each login role is a member of only one group role, which the migration creates with the
 * permissions of the service. Passwords are sent to Postgres only as SCRAM verifiers.
 */

import { randomBytes } from 'node:crypto'

import { createPool, isPermissionDenied } from '@keyward/database'

import { scramVerifier } from './scram.ts'

/** The default time limits of the statements of validators, in milliseconds. The longest statement loads the index. */
const VALIDATOR_TIMEOUTS = { statement_timeout: 600_000, idle_in_transaction_session_timeout: 60_000 }

/** The maximum size of the temporary files of a connection. Statements of validators write none that is nearly as large. */
const TEMPORARY_FILES = '1GB'

type GroupRole = 'keyward_validator' | 'keyward_management'

export interface Login {
  readonly name: string
  readonly group: GroupRole
  /** The password. Without a password, a new role can log in only where Postgres authenticates it by certificate or peer. */
  readonly password?: string | undefined
  /** The maximum number of connections. Without it, the limit does not change. A validator uses at most 16. */
  readonly connections?: number | undefined
}

/**
 * Creates the role if it does not exist, makes it a member of its group, sets its limits, and sets its password if one is given. `url` must contain a user who may create roles. Resolves to true if the role is new.
 */
export async function ensureLogin(url: string, { name, group, password, connections }: Login): Promise<boolean> {
  const pool = createPool(url, { name: 'keyward logins', max: 1 })
  try {
    const { rows } = await pool.query<{ isMember: boolean }>(
      `select pg_has_role(oid, $2, 'member') and not rolsuper as "isMember" from pg_roles where rolname = $1`,
      [name, group],
    )
    if (rows.length === 0) await runFormatted(pool, 'create role %I login in role %I', name, group)
    else if (rows[0]?.isMember === false) await runFormatted(pool, 'grant %I to %I', group, name)
    if (connections !== undefined)
      await runFormatted(pool, 'alter role %I connection limit %s', name, String(connections))
    if (group === 'keyward_validator' && (rows.length === 0 || password !== undefined)) await resetSettings(pool, name)
    if (password !== undefined) await runFormatted(pool, 'alter role %I password %L', name, scramVerifier(password))
    return rows.length === 0
  } finally {
    await pool.end()
  }
}

/** Replaces the settings of a validator's login. A login may change its own settings, so a stolen one can prevent its own statements. */
async function resetSettings(pool: ReturnType<typeof createPool>, name: string): Promise<void> {
  await runFormatted(pool, 'alter role %I reset all', name)
  const { rows } = await pool.query<{ datname: string }>(
    `select datname from pg_db_role_setting join pg_database d on d.oid = setdatabase where setrole = (select oid from pg_roles where rolname = $1)`,
    [name],
  )
  for (const { datname } of rows) await runFormatted(pool, 'alter role %I in database %I reset all', name, datname)
  for (const [setting, ms] of Object.entries(VALIDATOR_TIMEOUTS))
    await runFormatted(pool, 'alter role %I set %I = %L', name, setting, String(ms))
  // Only an administrator may set this limit, and the login cannot change it.
  await runFormatted(pool, 'alter role %I set temp_file_limit = %L', name, TEMPORARY_FILES).catch((error: unknown) => {
    if (!isPermissionDenied(error)) throw error
  })
}

/**
 * Revokes functions of Postgres from PUBLIC in the database of the connection. Large objects would let any login fill the disk, and advisory
 * locks would let it stop background work of management, which keeps the permission. Also lets management end transactions of validators
 * (`endStuckValidators`). The user must be a superuser.
 */
const RESTRICT_FUNCTIONS = `
  do $$
  declare
    found record;
    owner name := (select pg_get_userbyid(datdba) from pg_database where datname = current_database());
  begin
    for found in
      select oid::regprocedure as signature, proname ~ 'advisory' as is_lock from pg_proc
      where pronamespace = 'pg_catalog'::regnamespace and proname ~ '^(lo_.*|loread|lowrite|pg_(try_)?advisory_.*)$'
    loop
      execute format('revoke execute on function %s from public', found.signature);
      if found.is_lock then
        execute format('grant execute on function %s to keyward_management, %I', found.signature, owner);
      end if;
    end loop;
    grant pg_signal_backend, pg_read_all_stats to keyward_management;
  end $$`

export async function restrictFunctions(client: Pick<ReturnType<typeof createPool>, 'query'>): Promise<void> {
  await client.query(RESTRICT_FUNCTIONS)
}

/** The URLs of one database with the logins of the services. */
interface ServiceUrls {
  readonly validatorUrl: string
  readonly managementUrl: string
}

/**
 * Ensures a login for each service, `PREFIX_validator` and `PREFIX_management`, with new random passwords. Returns `url` with each login.
 * `url` must contain a superuser.
 */
export async function ensureServiceLogins(url: string, prefix: string): Promise<ServiceUrls> {
  const urlOf = async (service: 'validator' | 'management'): Promise<string> => {
    const [name, password] = [`${prefix}_${service}`, randomBytes(24).toString('base64url')]
    await ensureLogin(url, { name, password, group: `keyward_${service}` })
    const changed = new URL(url)
    changed.username = name
    changed.password = password
    return changed.href
  }
  return { validatorUrl: await urlOf('validator'), managementUrl: await urlOf('management') }
}

/** Runs a statement about roles or databases. Such statements accept no parameters, so the server quotes and inserts the values. */
export async function runFormatted(
  client: Pick<ReturnType<typeof createPool>, 'query'>,
  template: string,
  ...values: string[]
): Promise<void> {
  const { rows } = await client.query<{ statement: string }>('select format($1, variadic $2::text[]) as statement', [
    template,
    values,
  ])
  await client.query(rows[0]?.statement ?? '')
}
