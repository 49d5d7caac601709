/**
 * Runs validators and management as separate processes, as in production, so that tests can kill them, freeze them and change
 * their clock. The output of the processes is kept for error messages and searches.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { LAUNCH } from '@keyward/runtime'
import { z } from 'zod'

const Listening = z.object({ type: z.literal('listening'), port: z.number(), adminPort: z.number() })

export interface Service {
  readonly pid: number
  readonly port: number
  readonly adminPort: number
  /** Returns the standard output and error so far. */
  readonly output: () => string
  readonly signal: (signal: NodeJS.Signals) => void
  /** Suspends every thread of the process until SIGCONT. */
  readonly freeze: () => Promise<void>
  /** The exit code, or the signal that ended the process. */
  readonly exit: Promise<number | string>
  /** Sends SIGTERM. Resolves with the exit code. */
  readonly stop: () => Promise<number | string>
}

export type Env = Record<string, string>

const running = new Set<ChildProcess>()

/** Registers a process that `endChildren` ends if it is still running. */
export function endLater(child: ChildProcess): void {
  running.add(child)
  child.once('exit', () => running.delete(child))
}

/** Returns a free port below the range of outgoing connections, so that the port is still free at a restart. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = 10_240 + Math.floor(Math.random() * 22_000)
    const probe = createServer()
    const isFree = await new Promise<boolean>((resolve) => {
      probe.once('error', () => resolve(false))
      probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
    })
    if (isFree) return port
  }
}

const { PATH, HOME, NODE_OPTIONS } = process.env

/** The root folder of the checkout that contains this file. */
const MAX_STARTS = 5
const ROOT = fileURLToPath(new URL('../../../', import.meta.url))

/**
 * Starts a service and resolves when it listens. `nodeFlags` are arguments of Node before the program, such as a module to
 * import first. `wrapper` is a command that runs Node. `root` is the checkout of the program. Rejects with the output if the
 * service ends earlier.
 */
export async function startService(...options: Parameters<typeof startOnce>): Promise<Service> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(...options)
    } catch (error) {
      // On a busy machine, a connection may need more than the two seconds that a service waits. An orchestrator also starts it again.
      if (attempt === MAX_STARTS || !String(error).includes('connection timeout')) throw error
    }
  }
}

async function startOnce(
  name: 'validator' | 'management',
  env: Env,
  nodeFlags: readonly string[] = [],
  wrapper: readonly string[] = [],
  root = ROOT,
): Promise<Service> {
  const main = join(root, `services/${name}/src/main.ts`)
  const launch = LAUNCH[name]
  const [program, ...args] = [...wrapper, process.execPath, ...launch.nodeArguments, ...nodeFlags, main]
  const child = spawn(program, args, {
    env: { PATH, HOME, NODE_OPTIONS, ...launch.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  endLater(child)
  let output = ''
  child.stdout?.on('data', (data) => (output += String(data)))
  child.stderr?.on('data', (data) => (output += String(data)))
  const exit = once(child, 'exit').then(([code, signal]): number | string =>
    typeof code === 'number' ? code : String(signal),
  )
  const announced = new Promise<z.infer<typeof Listening>>((resolve) => {
    child.on('message', (message) => {
      const parsed = Listening.safeParse(message)
      if (parsed.success) resolve(parsed.data)
    })
  })
  const first = await Promise.race([announced, exit])
  if (typeof first !== 'object') throw new Error(output.trim() || `The ${name} ended before it listened (${first})`)
  const signal = (which: NodeJS.Signals): void => void child.kill(which)
  return {
    pid: child.pid ?? 0,
    port: first.port,
    adminPort: first.adminPort,
    output: () => output,
    signal,
    freeze: async () => {
      signal('SIGSTOP')
      await until(async () => (await threadStates(child.pid ?? 0)).every((state) => state === 'T'), 1)
    },
    exit,
    stop: () => {
      signal('SIGCONT')
      signal('SIGTERM')
      return exit
    },
  }
}

/** Returns the state of each thread (man7.org/linux/man-pages/man5/proc_pid_stat.5.html); none if the process has ended. */
async function threadStates(pid: number): Promise<string[]> {
  const threads = await readdir(`/proc/${pid}/task`).catch(() => [])
  const stats = threads.map((thread) => readFile(`/proc/${pid}/task/${thread}/stat`, 'utf8').catch(() => null))
  return (await Promise.all(stats))
    .filter((stat) => stat !== null)
    .map((stat) => stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '')
}

export function startValidator(
  databaseUrl: string,
  env: Env = {},
  nodeFlags: readonly string[] = [],
  wrapper: readonly string[] = [],
  root?: string,
): Promise<Service> {
  const ports = { VALIDATOR_PORT: '0', VALIDATOR_ADMIN_PORT: '0', VALIDATOR_WORKERS: '1' }
  const edge = { TRUSTED_PROXIES: 'all', COUNTRY_HEADER: 'x-country' }
  return startService('validator', { ...ports, ...edge, DATABASE_URL: databaseUrl, ...env }, nodeFlags, wrapper, root)
}

export const OPERATOR_TOKEN = 'operator-token-of-the-fault-tests'
export const MASTER_KEY = '7a'.repeat(32)

export function startManagement(databaseUrl: string, env: Env = {}, root?: string): Promise<Service> {
  const ports = { MANAGEMENT_PORT: '0', MANAGEMENT_ADMIN_PORT: '0', MANAGEMENT_RATE_LIMIT: '1000000' }
  const secrets = { OPERATOR_TOKEN, MASTER_KEY }
  return startService('management', { ...ports, ...secrets, DATABASE_URL: databaseUrl, ...env }, [], [], root)
}

/** Returns whether `/readyz` of the service returns 200. Returns false if there is no response. */
export async function isReady(service: Service): Promise<boolean> {
  const response = await fetch(`http://127.0.0.1:${service.adminPort}/readyz`).catch(() => null)
  await response?.arrayBuffer()
  return response?.ok ?? false
}

export async function untilReady(...services: readonly Service[]): Promise<void> {
  for (const service of services) while (!(await isReady(service))) await sleep(20)
}

/** Returns the value of a metric without labels, or the sum over all labels. */
export async function metric(service: Service, name: string): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${service.adminPort}/metrics`)).text()
  const values = [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*\\})? (\\S+)$`, 'gm'))].map(([, value]) =>
    Number(value),
  )
  return values.reduce((sum, value) => sum + value, 0)
}

/** Returns the resident memory of a service in MiB. Linux only. */
export async function memoryMib({ pid }: Service): Promise<number> {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(await readFile(`/proc/${pid}/status`, 'utf8')) ?? []
  return Math.round(Number(kib) / 1024)
}

/** Ends the processes that a failed test has left running. Call this function in `afterAll`. */
export async function endChildren(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const gone = once(child, 'exit')
      child.kill('SIGKILL')
      await gone
    }),
  )
}

/** Waits until `holds` returns true. Throws after 30 s, which is far longer than any test needs. */
export async function until(holds: () => Promise<boolean> | boolean, everyMs = 15): Promise<void> {
  const startedMs = performance.now()
  while (!(await holds())) {
    if (performance.now() - startedMs > 30_000) throw new Error(`Not true within 30 s: ${holds.toString()}`)
    await sleep(everyMs)
  }
}
