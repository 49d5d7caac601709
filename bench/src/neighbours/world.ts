/**
 * Starts one validator and one management process with the restricted roles of production. Creates a quiet organization
 * and a hostile one, which has many licenses.
 */

import { createPool } from '@keyward/database'
import { insertCustomer, insertLicense, insertMachine } from '@keyward/testkit'
import type pg from 'pg'
import { z } from 'zod'

import type { Child } from '../harness/children.ts'
import { planCores } from '../harness/cores.ts'
import { createTenant, startKeyward, startManagement, type Tenant, tenantSchema } from '../harness/servers.ts'

const QUIET_LICENSES = 40
const MERGED_LICENSES = 100_000

/** The addresses and secrets that the load generators receive, as JSON. */
export const worldSchema = z.object({
  validatorPort: z.int(),
  managementPort: z.int(),
  /**
   * The licenses with the keys in `limited` have free slots. The license with the key `known` and the id `knownId` has the machine
   * `machine`.
   */
  quiet: tenantSchema.extend({ limited: z.array(z.string()), known: z.string(), knownId: z.string() }),
  hostile: tenantSchema.extend({
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
    // The default rate limit rejects most requests of the attacks before they reach the code behind it.
    const limits: Record<string, string> = hasDefaults ? {} : { MANAGEMENT_RATE_LIMIT: '1000000' }
    const management = await startManagement(withLogin(url, 'management_bench'), limits)
    const [quiet, hostile] = [await createTenant(management.port), await createTenant(management.port)]
    await insertMany(pool, hostile, licenses)
    const keys = await insertKeys(pool, quiet, hostile)
    await pool.query('vacuum analyze')
    const proxies = { TRUSTED_PROXIES: 'all', CLIENT_IP_HEADER: 'x-client-ip', LOG_LEVEL: 'fatal' }
    const validator = await startKeyward(withLogin(url, 'validator_bench'), { ...planCores(), pinned: false }, proxies)
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

/** Inserts many licenses without triggers. In every thousand licenses, one is revoked, one is suspended and one has expired. */
async function insertMany(pool: pg.Pool, { id, productId, customerId }: Tenant, licenses: number): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('begin; set local session_replication_role = replica')
    await client.query(
      `with inserted as (
         insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines, status, expires_at)
         select new_id(), $1, $2, $3, 'many ' || i, case i % 1000 when 3 then 'TRIAL' else 'PERPETUAL' end, 5,
           case i % 1000 when 1 then 'revoked' when 2 then 'suspended' else 'active' end,
           case i % 1000 when 3 then now() - interval '1 day' end
         from generate_series(1, $4::integer) i returning id)
       insert into license_slots (license_id) select id from inserted`,
      [id, productId, customerId, licenses],
    )
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
  const richCustomerId = await insertCustomer(pool, { organizationId: hostile.id, email: 'rich@example.com' })
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
