/** Starts Keyward's validator and the baselines, each as a separate process on the server's cores. */

import { join } from 'node:path'

import { LAUNCH } from '@keyward/runtime'

import type { BaselineName } from '../baselines/installed.ts'
import { startChild, type Child } from './children.ts'
import { pinPrefix, type CorePlan } from './cores.ts'

export interface Server extends Child {
  name: string
  url: URL
  /** The time from the spawn until the server is ready for checks. */
  readyMs: number
}

export interface KeywardOptions {
  name?: string
  workers?: number
  /** Environment variables in addition to those that `startKeyward` sets. */
  env?: Record<string, string>
  nodeArguments?: readonly string[]
  keepLine?: (line: string) => boolean
}

const ROOT = join(import.meta.dirname, '../../..')
/** The interval of readiness requests. Each response costs the loading thread about a millisecond. */
const READY_POLL_MS = 50
const READY_LIMIT_MS = 300_000

/** Starts a validator and resolves when its index is loaded. */
export async function startKeyward(databaseUrl: string, plan: CorePlan, options: KeywardOptions = {}): Promise<Server> {
  const started = performance.now()
  const child = await startChild({
    file: join(ROOT, 'services/validator/src/main.ts'),
    launch: LAUNCH.validator,
    nodeArguments: options.nodeArguments ?? [],
    prefix: pinPrefix(plan.server, plan),
    env: {
      DATABASE_URL: databaseUrl,
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: String(options.workers ?? 1),
      LOG_LEVEL: 'warn',
      ...options.env,
    },
    ...(options.keepLine === undefined ? {} : { keepLine: options.keepLine }),
  })
  await untilReady(child.adminPort)
  return named(child, options.name ?? 'keyward', performance.now() - started)
}

export async function startBaseline(name: BaselineName, databaseUrl: string, plan: CorePlan): Promise<Server> {
  const child = await startChild({
    file: join(ROOT, `bench/src/baselines/${name}.ts`),
    launch: LAUNCH.validator, // the same settings as the validator
    prefix: pinPrefix(plan.server, plan),
    env: { DATABASE_URL: databaseUrl },
  })
  return named(child, name, child.startedMs)
}

function named(child: Child, name: string, readyMs: number): Server {
  return { ...child, name, readyMs, url: new URL(`http://127.0.0.1:${child.port}`) }
}

async function untilReady(adminPort: number): Promise<void> {
  for (const start = performance.now(); performance.now() - start < READY_LIMIT_MS;) {
    try {
      const response = await fetch(`http://127.0.0.1:${adminPort}/readyz`)
      await response.arrayBuffer()
      if (response.ok) return
    } catch {
      // The admin port does not listen yet.
    }
    await new Promise((resolve) => setTimeout(resolve, READY_POLL_MS))
  }
  throw new Error('the validator was not ready within five minutes')
}

/** Returns the number of times that a validator has loaded all rows. */
export async function loadsOf(adminPort: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text()
  return Number(/^keyward_feed_loads_total(?:\{[^}]*\})? (\d+)/m.exec(text)?.[1] ?? Number.NaN)
}
