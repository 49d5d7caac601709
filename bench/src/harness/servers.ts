/** Starts the services and the baselines, each as a separate process. */

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { LAUNCH } from '@keyward/runtime'
import { z } from 'zod'

import type { BaselineName } from '../baselines/companion.ts'
import { startChild, type Child } from './children.ts'
import { pinPrefix, type CorePlan } from './cores.ts'

export interface Server extends Child {
  url: URL
  /** The time from the spawn until the server is ready for checks. */
  readyMs: number
}

const ROOT = join(import.meta.dirname, '../../..')
const OPERATOR_TOKEN = 'operator-token-of-the-bench-programs'
/** The interval of readiness requests. Each response costs the loading thread about a millisecond. */
const READY_POLL_MS = 50
const READY_LIMIT_MS = 300_000

/** Starts a validator with one worker and resolves when its index is loaded. `env` adds variables. */
export async function startKeyward(
  databaseUrl: string,
  plan: CorePlan,
  env: Readonly<Record<string, string>> = {},
): Promise<Server> {
  const started = performance.now()
  const child = await startChild({
    file: join(ROOT, 'services/validator/src/main.ts'),
    launch: LAUNCH.validator,
    prefix: pinPrefix(plan.server, plan),
    env: {
      DATABASE_URL: databaseUrl,
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: '1',
      LOG_LEVEL: 'warn',
      ...env,
    },
  })
  await untilReady(child.adminPort)
  return serverOf(child, performance.now() - started)
}

export async function startBaseline(name: BaselineName, databaseUrl: string, plan: CorePlan): Promise<Server> {
  const child = await startChild({
    file: join(ROOT, `bench/src/baselines/${name}.ts`),
    launch: LAUNCH.validator, // the same settings as the validator
    prefix: pinPrefix(plan.server, plan),
    env: { DATABASE_URL: databaseUrl },
  })
  return serverOf(child, child.startedMs)
}

/** Starts a management process. `env` adds variables. */
export function startManagement(databaseUrl: string, env: Readonly<Record<string, string>> = {}): Promise<Child> {
  return startChild({
    file: join(ROOT, 'services/management/src/main.ts'),
    launch: LAUNCH.management,
    env: {
      DATABASE_URL: databaseUrl,
      MANAGEMENT_PORT: '0',
      MANAGEMENT_ADMIN_PORT: '0',
      OPERATOR_TOKEN,
      MASTER_KEY: '5e'.repeat(32),
      TRUSTED_PROXIES: 'all',
      CLIENT_IP_HEADER: 'x-client-ip',
      LOG_LEVEL: 'fatal',
      ...env,
    },
  })
}

export const tenantSchema = z.object({
  id: z.string(),
  managementToken: z.string(),
  apiKey: z.string(),
  productId: z.string(),
  customerId: z.string(),
})
export type Tenant = z.infer<typeof tenantSchema>

/** Creates an organization with a product and a customer through the management API. */
export async function createTenant(port: number): Promise<Tenant> {
  const post = async (path: string, token: string, body: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
    if (!response.ok) throw new Error(`POST ${path} returned ${response.status}: ${await response.text()}`)
    return z.record(z.string(), z.unknown()).parse(await response.json())
  }
  const organization = await post('organizations', OPERATOR_TOKEN, { name: 'Bench', plan: 'STANDARD' })
  const token = z.string().parse(organization['managementToken'])
  const { id: productId } = await post('products', token, { name: 'Product' })
  const { id: customerId } = await post('customers', token, { email: 'customer@example.com' })
  return tenantSchema.parse({ ...organization, productId, customerId })
}

function serverOf(child: Child, readyMs: number): Server {
  return { ...child, readyMs, url: new URL(`http://127.0.0.1:${child.port}`) }
}

async function untilReady(adminPort: number): Promise<void> {
  for (const start = performance.now(); performance.now() - start < READY_LIMIT_MS;) {
    const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
    await response.arrayBuffer()
    if (response.ok) return
    await sleep(READY_POLL_MS)
  }
  throw new Error('the validator was not ready within five minutes')
}
