import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { createPool, endStuckValidators } from '@keyward/database'
import { createTestDatabase, insertOrganization, onServer, SERVER_VARIABLE, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

import { runMigrate, runMigrateBeforeService } from '../migrate/command.ts'
import { ensureLogin } from '../shared/logins.ts'
import { listenOn } from '../shared/ports.ts'
import { scramVerifier } from '../shared/scram.ts'

const MIGRATE = fileURLToPath(new URL('../migrate/main.ts', import.meta.url))
const LOGIN = `odd "name' ${process.pid}`
let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase()
})

afterAll(async () => {
  await database.pool.query(`drop role if exists "odd ""name' ${process.pid}"`)
  await database.drop()
})

/** Runs the program in this process and returns the printed lines. */
async function run(env: Record<string, string>): Promise<string> {
  const lines: string[] = []
  const print = (line: string): unknown => lines.push(`${line}\n`)
  await runMigrate({ ...process.env, ...env }, print, print)
  return lines.join('')
}

function withLogin(url: string, name: string, password: string): string {
  const changed = new URL(url)
  changed.username = encodeURIComponent(name)
  changed.password = encodeURIComponent(password)
  return changed.href
}

test('the program prints that a migrated schema is up to date, or which variable is missing', async () => {
  const program = (env: Record<string, string>) =>
    promisify(execFile)(process.execPath, [MIGRATE], { env: { ...process.env, ...env } })
  expect(await program({ KEYWARD_DATABASE_URL: database.url })).toEqual({
    stdout: 'The schema is up to date.\n',
    stderr: '',
  })
  await expect(program({ DATABASE_URL: database.url, KEYWARD_VALIDATOR_PASSWORD: "pass'word" })).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr:
      'DATABASE_URL is the old name of KEYWARD_DATABASE_URL.\n' +
      'KEYWARD_VALIDATOR_LOGIN must be the name of the role that KEYWARD_VALIDATOR_PASSWORD belongs to; it is not set\n',
  })
})

test.each(['VALIDATOR', 'MANAGEMENT'])(
  'reports whether it created the role of %s and set its password',
  async (service) => {
    const name = `${LOGIN} ${service}`
    const login = async (password: Record<string, string>): Promise<string> =>
      (await run({ DATABASE_URL: database.url, [`${service}_LOGIN`]: name, ...password })).split('\n')[1] ?? ''
    expect(await login({})).toMatch(
      new RegExp(`^Created role odd "name' \\d+ \\w+ without a password\\. Set KEYWARD_${service}_PASSWORD unless `),
    )
    expect(await login({})).toMatch(/already exists; its password was not changed\.$/)
    expect(await login({ [`${service}_PASSWORD`]: "pass'word" })).toMatch(
      new RegExp(`already exists; its password was set to KEYWARD_${service}_PASSWORD\\.$`),
    )
    await database.pool.query(`drop role "odd ""name' ${process.pid} ${service}"`)
  },
)

test('creates a role that is a member of keyward_validator and cannot write licenses', async () => {
  await ensureLogin(database.url, { name: LOGIN, group: 'keyward_validator', password: "other'pass" })
  const pool = createPool(withLogin(database.url, LOGIN, "other'pass"), { name: 'test', max: 1 })
  await expect(pool.query(`update licenses set status = 'active'`)).rejects.toThrow('permission denied')
  const { rows } = await pool.query<{ member: boolean }>(`select pg_has_role('keyward_validator', 'member') as member`)
  expect(rows).toEqual([{ member: true }])
  await pool.end()
})

test('makes an existing role a member of its group', async () => {
  const name = `keyward_bare_${process.pid}`
  await database.pool.query(`create role ${name} login`)
  await ensureLogin(database.url, { name, group: 'keyward_management' })
  const { rows } = await database.pool.query(`select pg_has_role($1, 'keyward_management', 'member') as member`, [name])
  expect(rows).toEqual([{ member: true }])
  await database.pool.query(`drop role ${name}`)
})

test.each(['plain-password-1', 'ﬁancé\u00adeﬀ', 'Ⅸ²パスワード'])(
  'computes the same verifier of %j as Postgres',
  async (password) => {
    const name = `keyward_scram_${process.pid}`
    await database.pool.query(`set password_encryption = 'scram-sha-256'; create role ${name} password '${password}'`)
    const { rows } = await database.pool.query<{ stored: string }>(
      'select rolpassword as stored from pg_authid where rolname = $1',
      [name],
    )
    const stored = rows[0]?.stored ?? ''
    expect(scramVerifier(password, Buffer.from(/:([^$]+)\$/.exec(stored)?.[1] ?? '', 'base64'))).toBe(stored)
    expect(scramVerifier(password)).not.toBe(stored)
    await database.pool.query(`drop role ${name}`)
  },
)

test('with --before-service, retries until Postgres accepts connections', async () => {
  const { hostname, port } = new URL(database.url)
  const absent = new URL(database.url)
  const late = createServer((socket) => {
    const server = connect(Number(port), hostname)
    socket.pipe(server).pipe(socket)
    for (const side of [socket, server]) side.on('error', () => socket.destroy())
  })
  absent.port = String(await listenOn(late, 0))
  await new Promise((resolve) => late.close(resolve))
  const lines: string[] = []
  const finished = runMigrateBeforeService(
    { DATABASE_URL: absent.href },
    (line) => lines.push(line),
    (line) => lines.push(line),
  )
  await expect.poll(() => lines.length).toBe(1)
  expect(lines[0]).toMatch(/^Postgres is not available: .*\. The migration retries every second\.$/)
  await listenOn(late, Number(absent.port))
  await finished
  late.close()
  expect(lines.slice(1)).toEqual(['The schema is up to date.'])
})

test('with --before-service, accepts the schema of a newer version', async () => {
  await database.pool.query(`insert into migrations values ('9999_future')`)
  const lines: string[] = []
  const print = (line: string): unknown => lines.push(line)
  await runMigrateBeforeService({ DATABASE_URL: database.url }, print, print)
  await database.pool.query(`delete from migrations where name = '9999_future'`)
  expect(lines).toEqual(['The schema belongs to a newer version (9999_future). It was not changed.'])
})

test('with --before-service, rejects a failed login without a retry', async () => {
  const other = withLogin(database.url, `nobody_${process.pid}`, 'a-wrong-password')
  const silent = (): undefined => undefined
  await expect(runMigrateBeforeService({ DATABASE_URL: other }, silent, silent)).rejects.toThrow(/nobody_/)
})

test.each(['VALIDATOR', 'MANAGEMENT'])('rejects a password for %s without the name of the login', async (service) => {
  await expect(run({ DATABASE_URL: database.url, [`${service}_PASSWORD`]: "pass'word" })).rejects.toThrow(
    `KEYWARD_${service}_LOGIN must be the name of the role that KEYWARD_${service}_PASSWORD belongs to; it is not set`,
  )
})

test('rejects an invalid variable with an error that names it', async () => {
  await expect(run({ DATABASE_URL: 'nowhere' })).rejects.toThrow(
    /^DATABASE_URL must be an address such as .*; the value received is not shown$/,
  )
})

test('the documented statements after a restore end all sessions and invitations, and replace the key of the services', async () => {
  const text = await readFile(new URL('../../docs/operations/backup.md', import.meta.url), 'utf8')
  const [, statements = ''] = /```sql\n(begin;\ndelete from sessions;[^`]+)```/.exec(text) ?? []
  const organizationId = await insertOrganization(database.pool)
  await database.pool.query(
    `with member as (insert into members (id, organization_id, email, permissions)
       values (gen_random_uuid(), $1, 'bob@example.com', '{}') returning id)
     insert into invitations (member_id, organization_id, secret_hash, invited_by, expires_at)
     select id, $1, sha256('x'), '{"type":"SYSTEM"}', now() + interval '1 day' from member`,
    [organizationId],
  )
  const keys = 'select secret from internal_keys order by purpose'
  const before = await database.pool.query(keys)
  await database.pool.query(statements)
  expect((await database.pool.query('select from invitations union all select from sessions')).rows).toEqual([])
  expect((await database.pool.query(keys)).rows).not.toEqual(before.rows)
})

describe('with ADMIN_DATABASE_URL', () => {
  const suffix = `${process.pid}_${randomBytes(3).toString('hex')}`
  const [owner, name, management] = [`keyward_owner_${suffix}`, `keyward_owned_${suffix}`, `keyward_m_${suffix}`]
  const admin = process.env[SERVER_VARIABLE] ?? ''
  const password = 'a-long-enough-password'
  const ownerUrl = withLogin(admin, owner, password).replace(/\/[^/]*$/, `/${name}`)
  const env = {
    ADMIN_DATABASE_URL: admin,
    DATABASE_URL: ownerUrl,
    MANAGEMENT_LOGIN: management,
    MANAGEMENT_PASSWORD: password,
  }
  const ownedByOthers = (url: string): Promise<string[]> =>
    onServer(url, async (client) => {
      const { rows } = await client.query<{ what: string }>(
        `select relname::text as what from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'p', 'S')
           and pg_get_userbyid(relowner) <> $1
         union all select proname::text from pg_proc p where pronamespace = 'public'::regnamespace
           and pg_get_userbyid(proowner) <> $1
           -- The functions of a trusted extension belong to a superuser.
           and not exists (select from pg_depend d where d.objid = p.oid and d.deptype = 'e')
         union all select datname::text from pg_database where datname = current_database() and pg_get_userbyid(datdba) <> $1`,
        [owner],
      )
      return rows.map(({ what }) => what)
    })

  afterAll(() =>
    onServer(admin, async (client) => {
      await client.query(`drop database if exists ${name} with (force)`)
      await client.query(`drop role if exists ${owner}, ${management}`)
    }),
  )

  test('creates a database, its owner without permissions on the server, and the login of management', async () => {
    expect(await run(env)).toContain(
      `Created role ${owner}, the owner of the tables.\nCreated database ${name}.\nApplied `,
    )
    expect(await ownedByOthers(ownerUrl)).toEqual([])
    await onServer(ownerUrl, async (client) => {
      const { rows } = await client.query(
        'select rolsuper, rolcreaterole, rolcreatedb, rolbypassrls, rolreplication from pg_roles where rolname = $1',
        [owner],
      )
      expect(new Set(Object.values(rows[0] ?? {}))).toEqual(new Set([false]))
      for (const statement of [
        `copy (select 1) to program 'true'`,
        `select pg_read_file('postgresql.conf')`,
        'create role other',
        `alter system set log_statement = 'all'`,
        'select rolpassword from pg_authid',
      ])
        await expect(client.query(statement), statement).rejects.toThrow(/permission denied|must be superuser/)
    })
  })

  test('creates a login with limits for each validator, which can neither lock nor store large objects', async () => {
    const validators = [`keyward_v1_${suffix}`, `keyward_v2_${suffix}`]
    const passwords = [`${password}-1`, `${password}-2`]
    const own = { VALIDATOR_LOGIN: validators.join(','), VALIDATOR_CONNECTIONS: '2' }
    await expect(run({ ...env, ...own, VALIDATOR_PASSWORD: password })).rejects.toThrow('list of 2 passwords')
    await run({ ...env, ...own, VALIDATOR_PASSWORD: passwords.join(',') })
    try {
      await onServer(withLogin(ownerUrl, validators[1] ?? '', passwords[1] ?? ''), async (client) => {
        await expect(client.query('select id from organizations')).resolves.toBeDefined()
        for (const statement of [
          `select lo_from_bytea(0, 'x')`,
          'select lo_create(0)',
          `select pg_advisory_lock(hashtext('keyward retention'))`,
          'select pg_try_advisory_xact_lock(1)',
          'do $$ begin lock table licenses in share mode; end $$',
          `alter role ${validators[0]} password 'other'`,
        ])
          await expect(client.query(statement), statement).rejects.toThrow(/permission denied|must be/)
        // The functions of validators take these locks as the owner.
        await client.query(`select prune_change_log(interval '1 day', 1)`)
        const { rows } = await client.query(`show statement_timeout`)
        expect(rows).toEqual([{ statement_timeout: '10min' }])
        expect((await client.query('show temp_file_limit')).rows).toEqual([{ temp_file_limit: '1GB' }])
        await expect(client.query('set temp_file_limit = -1')).rejects.toThrow(/permission denied/)
        const more = (work: () => Promise<unknown>) =>
          onServer(withLogin(ownerUrl, validators[1] ?? '', passwords[1] ?? ''), work)
        await more(() => expect(more(() => Promise.resolve())).rejects.toThrow(/too many connections for role/))
      })
      await onServer(withLogin(ownerUrl, management, password), (client) =>
        client.query('select pg_try_advisory_xact_lock(1)'),
      )
      await onServer(withLogin(ownerUrl, validators[1] ?? '', passwords[1] ?? ''), async (reader) => {
        await reader.query('begin; select from organizations')
        await onServer(withLogin(ownerUrl, validators[0] ?? '', passwords[0] ?? ''), async (holder) => {
          await holder.query('begin; select pg_current_xact_id()')
          const ended = () =>
            onServer(withLogin(ownerUrl, management, password), (client) => endStuckValidators(client, 0))
          expect(await ended()).toBe(1)
          await expect(holder.query('select 1')).rejects.toThrow(/connection|terminat/i)
        })
        await reader.query('commit')
      })
      // A login may lock itself out. The next migration ends that.
      const first = withLogin(ownerUrl, validators[0] ?? '', passwords[0] ?? '')
      const { pathname } = new URL(ownerUrl)
      await onServer(first, async (client) => {
        await client.query(`alter role ${validators[0]} set default_transaction_read_only = on`)
        await client.query(`alter role ${validators[0]} in database ${pathname.slice(1)} set search_path = pg_catalog`)
        await client.query(`alter role ${validators[0]} password 'other'`)
      })
      await run({ ...env, ...own, VALIDATOR_PASSWORD: passwords.join(',') })
      await onServer(first, async (client) => {
        const { rows } = await client.query(
          `select current_setting('default_transaction_read_only') as readonly, current_setting('search_path') as path`,
        )
        expect(rows).toEqual([{ readonly: 'off', path: '"$user", public' }])
      })
    } finally {
      await onServer(admin, (client) => client.query(`drop role if exists ${validators.join(', ')}`))
    }
  })

  test('the login of management cannot change the schema or become the owner', async () => {
    await onServer(withLogin(ownerUrl, management, password), async (client) => {
      await expect(client.query('select from licenses')).resolves.toBeDefined()
      for (const statement of [
        'create table t ()',
        'create temporary table t ()',
        'alter table licenses disable trigger all',
        'drop function log_machines()',
        'truncate audit_log',
        `set role ${owner}`,
        'set session_replication_role = replica',
        `copy (select 1) to program 'true'`,
      ])
        await expect(client.query(statement), statement).rejects.toThrow(/permission denied|must be/)
    })
  })

  test('a second run changes only the owner of objects that a superuser has created', async () => {
    expect(await run(env)).toMatch(/^The schema is up to date\.\nRole \S+ already exists; its password was set/)
    await onServer(admin, (client) => client.query(`drop database ${name} with (force)`))
    await onServer(admin, (client) => client.query(`create database ${name}`))
    await run({ DATABASE_URL: admin.replace(/\/[^/]*$/, `/${name}`) })
    expect((await ownedByOthers(ownerUrl)).length).toBeGreaterThan(40)
    expect(await run(env)).toMatch(/^Handed \d+ objects over to \S+\.\nThe schema is up to date\./)
    expect(await ownedByOthers(ownerUrl)).toEqual([])
  })

  test('rejects an owner that is the administrator', async () => {
    await expect(run({ ...env, DATABASE_URL: admin })).rejects.toThrow(
      'KEYWARD_DATABASE_URL must name another user than KEYWARD_ADMIN_DATABASE_URL, because the owner must not be an administrator',
    )
  })
})
