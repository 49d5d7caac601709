/**
 * Starts one validator and one management process with the restricted roles of production. Creates a quiet organization
 * and a hostile one, which has many licenses.
 */

import { join } from 'node:path'

import { createPool } from '@keyward/database'
import { LAUNCH } from '@keyward/runtime'
import { insertLicense, insertMachine } from '@keyward/testkit'
import type pg from 'pg'
import { z } from 'zod'

import { type Child, startChild } from '../harness/children.ts'

const ROOT = join(import.meta.dirname, '../../..')
const OPERATOR_TOKEN = 'operator-token-of-the-neighbours-bench'
const QUIET_LICENSES = 40
const MERGED_LICENSES = 100_000
const READY_POLL_MS = 50

const tenant = z.object({
  id: z.string(),
  managementToken: z.string(),
  apiKey: z.string(),
  productId: z.string(),
  customerId: z.string(),
})

/** The addresses and secrets that the load generators receive, as JSON. */
export const worldSchema = z.object({
  validatorPort: z.int(),
  managementPort: z.int(),
  /**
   * The licenses with the keys in `limited` have free slots. The license with the key `known` and the id `knownId` has the machine
   * `machine`.
   */
  quiet: tenant.extend({ limited: z.array(z.string()), known: z.string(), knownId: z.string() }),
  hostile: tenant.extend({
    /** The keys of licenses that are full, that have free slots, and that have no limit. */
    full: z.array(z.string()),
    free: z.array(z.string()),
    unlimited: z.array(z.string()),
    /** The id of a customer with many licenses. */
    richCustomerId: z.string(),
  }),
  /** The methods and paths of management that take a body. */
  bodyEndpoints: z.array(z.object({ method: z.string(), path: z.string() })),
})
export type World = z.infer<typeof worldSchema>
type Tenant = z.infer<typeof tenant>

export interface RunningServices {
  world: World
  validator: Child
  management: Child
  stop: () => Promise<void>
}

/** Starts the services. The login in `url` must be a superuser. */
export async function startWorld(url: string, licenses: number, hasDefaults: boolean): Promise<RunningServices> {
  const pool = createPool(url, { name: 'neighbours', max: 4, statementTimeoutMs: 0 })
  try {
    for (const role of ['validator', 'management'])
      await pool.query(`create role ${role}_bench login password 'bench' in role keyward_${role}`)
    const management = await startManagement(withLogin(url, 'management_bench'), hasDefaults)
    const [quiet, hostile] = [await createTenant(management.port), await createTenant(management.port)]
    await insertMany(pool, hostile, licenses)
    const keys = await insertKeys(pool, quiet, hostile)
    await pool.query('vacuum analyze')
    const validator = await startValidator(withLogin(url, 'validator_bench'))
    const world = {
      validatorPort: validator.port,
      managementPort: management.port,
      quiet: { ...quiet, ...keys.quiet },
      hostile: { ...hostile, ...keys.hostile },
      bodyEndpoints: await bodyEndpoints(management.port),
    }
    const stop = async (): Promise<void> => void (await Promise.all([validator.stop(), management.stop()]))
    return { world, validator, management, stop }
  } finally {
    await pool.end()
  }
}

function withLogin(url: string, login: string): string {
  const changed = new URL(url)
  changed.username = login
  changed.password = 'bench'
  return changed.toString()
}

function startManagement(databaseUrl: string, hasDefaults: boolean): Promise<Child> {
  return startChild({
    file: join(ROOT, 'services/management/src/main.ts'),
    launch: LAUNCH.management,
    env: {
      DATABASE_URL: databaseUrl,
      MANAGEMENT_PORT: '0',
      MANAGEMENT_ADMIN_PORT: '0',
      // The default rate limit rejects most requests of the attacks before they reach the code behind it.
      ...(hasDefaults ? {} : { MANAGEMENT_RATE_LIMIT: '1000000' }),
      OPERATOR_TOKEN,
      MASTER_KEY: '5e'.repeat(32),
      TRUSTED_PROXIES: 'all',
      CLIENT_IP_HEADER: 'x-client-ip',
      LOG_LEVEL: 'fatal',
    },
  })
}

async function startValidator(databaseUrl: string): Promise<Child> {
  const validator = await startChild({
    file: join(ROOT, 'services/validator/src/main.ts'),
    launch: LAUNCH.validator,
    env: {
      DATABASE_URL: databaseUrl,
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: '1',
      TRUSTED_PROXIES: 'all',
      CLIENT_IP_HEADER: 'x-client-ip',
      LOG_LEVEL: 'fatal',
    },
  })
  const isReady = async (): Promise<boolean> => {
    const response = await fetch(`http://127.0.0.1:${validator.adminPort}/readyz`)
    await response.arrayBuffer()
    return response.ok
  }
  while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS))
  return validator
}

async function createTenant(port: number): Promise<Tenant> {
  const post = async <T>(path: string, token: string, body: object, schema: z.ZodType<T>): Promise<T> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    return schema.parse(await response.json())
  }
  const created = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
  const organization = await post('organizations', OPERATOR_TOKEN, { name: 'a', plan: 'STANDARD' }, created)
  const token = organization.managementToken
  const withId = z.object({ id: z.string() })
  const { id: productId } = await post('products', token, { name: 'p' }, withId)
  const { id: customerId } = await post('customers', token, { email: 'a@example.com' }, withId)
  return { ...organization, productId, customerId }
}

/** Inserts many licenses without triggers. In every thousand licenses, one is revoked, one is suspended and one has expired. */
async function insertMany(pool: pg.Pool, hostile: Tenant, licenses: number): Promise<void> {
  const { id, productId, customerId } = hostile
  const client = await pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    await client.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines, status, expires_at)
       select new_id(), $1, $2, $3, 'many ' || i, case i % 1000 when 3 then 'TRIAL' else 'PERPETUAL' end, 5,
         case i % 1000 when 1 then 'revoked' when 2 then 'suspended' else 'active' end,
         case i % 1000 when 3 then now() - interval '1 day' end
       from generate_series(1, $4::integer) i`,
      [id, productId, customerId, licenses],
    )
    await client.query('insert into license_slots (license_id) select id from licenses where organization_id = $1', [
      id,
    ])
    await client.query('select recount_usage()')
    await client.query('commit')
  } finally {
    client.release()
  }
}

async function insertKeys(pool: pg.Pool, quiet: Tenant, hostile: Tenant) {
  const licenses = async (owner: Tenant, count: number, maxMachines: number | null): Promise<string[]> => {
    const { id: organizationId, productId, customerId } = owner
    const fields = { organizationId, productId, customerId, maxMachines }
    const inserted = await Promise.all(Array.from({ length: count }, () => insertLicense(pool, fields)))
    return inserted.map(({ key }) => key)
  }
  const { id: organizationId, productId, customerId } = quiet
  const known = await insertLicense(pool, { organizationId, productId, customerId, maxMachines: 5 })
  await insertMachine(pool, { licenseId: known.id, machineId: 'machine' })
  const full = await licenses(hostile, 200, 1)
  await pool.query(
    `insert into machines (id, license_id, machine_id) select new_id(), id, 'first' from licenses
     where organization_id = $1 and max_machines = 1`,
    [hostile.id],
  )
  const { rows } = await pool.query<{ id: string }>(
    `insert into customers (id, organization_id, email) values (new_id(), $1, 'rich@example.com') returning id`,
    [hostile.id],
  )
  const richCustomerId = rows[0]?.id ?? ''
  await pool.query(
    `update licenses set customer_id = $1 where id in (select id from licenses where organization_id = $2 limit ${MERGED_LICENSES})`,
    [richCustomerId, hostile.id],
  )
  return {
    quiet: { limited: await licenses(quiet, QUIET_LICENSES, 100_000), known: known.key, knownId: known.id },
    hostile: {
      full,
      free: await licenses(hostile, 50, 100_000),
      unlimited: await licenses(hostile, 50, null),
      richCustomerId,
    },
  }
}

async function bodyEndpoints(port: number): Promise<World['bodyEndpoints']> {
  const response = await fetch(`http://127.0.0.1:${port}/openapi.json`)
  const document = z
    .object({ paths: z.record(z.string(), z.record(z.string(), z.unknown())) })
    .parse(await response.json())
  return Object.entries(document.paths).flatMap(([path, operations]) =>
    Object.keys(operations)
      .filter((method) => method === 'post' || method === 'patch' || method === 'put')
      .map((method) => ({
        method: method.toUpperCase(),
        path: path.replaceAll(/\{\w+\}/g, '0197a000-0000-7000-8000-000000000000'),
      })),
  )
}
