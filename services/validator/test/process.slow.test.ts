import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { Agent } from 'node:http'
import { getPriority } from 'node:os'
import { fileURLToPath } from 'node:url'

import { afterAll, beforeAll, expect, test } from 'vitest'

import { createWorld, send, until, type World } from './harness.ts'

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url))
const V2 = '/api/v2/license/validate'
let world: World
let license: Awaited<ReturnType<World['license']>>

beforeAll(async () => {
  world = await createWorld()
  license = await world.license({ maxMachines: null })
})
afterAll(async () => {
  await world.database.drop()
})

interface Started {
  child: ChildProcess
  output: () => string
  exit: Promise<number | null>
  /** Resolves to the exit code after all output has arrived. Never resolves for a child that was disconnected. */
  closed: Promise<number | null>
}

function start(env: Record<string, string>): Started {
  const child = spawn(process.execPath, [MAIN], {
    env: {
      PATH: process.env['PATH'],
      UWEBSOCKETS_RELEASE: process.env['UWEBSOCKETS_RELEASE'],
      VALIDATOR_PORT: '0',
      VALIDATOR_ADMIN_PORT: '0',
      VALIDATOR_WORKERS: '2',
      DATABASE_URL: world.database.validatorUrl,
      ...env,
    },
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  let output = ''
  child.stdout?.on('data', (data) => (output += String(data)))
  child.stderr?.on('data', (data) => (output += String(data)))
  const codeOf = (event: 'exit' | 'close'): Promise<number | null> =>
    once(child, event).then(([code]) => (typeof code === 'number' ? code : null))
  return { child, output: () => output, exit: codeOf('exit'), closed: codeOf('close') }
}

async function ports(child: ChildProcess): Promise<{ port: number; adminPort: number }> {
  return await new Promise(
    (resolve) => void child.once('message', (message: { port: number; adminPort: number }) => resolve(message)),
  )
}

test('completes every request and writes all usage on SIGTERM under load', async () => {
  const started = start({})
  const { port, adminPort } = await ports(started.child)
  await until(async () => (await send(adminPort, '/readyz', { method: 'GET' })).status === 200)
  const agent = new Agent({ keepAlive: true, maxSockets: 10 })
  let succeeded = 0
  let late = 0
  const state = { isStopping: false }
  const failures: unknown[] = []
  const load = Array.from({ length: 10 }, async () => {
    while (!state.isStopping) {
      const sent = send(port, V2, { body: { license: license.key }, secret: world.secret, agent })
      const outcome = await sent.then(
        ({ status }) => status,
        (error: unknown) => error,
      )
      if (outcome === 200) succeeded++
      else if (state.isStopping) late++
      else failures.push(outcome)
    }
  })
  await new Promise((resolve) => setTimeout(resolve, 300))
  started.child.kill('SIGTERM')
  await until(async () => (await send(adminPort, '/readyz', { method: 'GET' })).status === 503)
  // A balancer would stop sending requests now. Open requests still receive their responses.
  state.isStopping = true
  await Promise.all(load)
  expect(failures).toEqual([])
  expect(await started.closed).toBe(0)
  agent.destroy()
  const { rows } = await world.database.pool.query<{ n: number }>('select sum(count)::int as n from check_counts')
  const counted = rows[0]?.n ?? 0
  expect(counted).toBeGreaterThanOrEqual(succeeded)
  expect(counted).toBeLessThanOrEqual(succeeded + late)
  expect(started.output()).not.toContain(license.key)
})

/** Returns the niceness of each thread, by thread id. */
function niceOf(pid: number): Map<number, number> {
  const threads = readdirSync(`/proc/${pid}/task`).map((thread): [number, number] => {
    const stat = readFileSync(`/proc/${pid}/task/${thread}/stat`, 'utf8')
    // The name of the thread may contain spaces, so the fields are counted from its end.
    return [Number(thread), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])]
  })
  return new Map(threads)
}

test.skipIf(process.platform !== 'linux')('runs the main thread at a lower priority than the workers', async () => {
  const { child, exit } = start({})
  await ports(child)
  const pid = child.pid ?? 0
  const nicer = [...niceOf(pid)].filter(([, nice]) => nice !== getPriority())
  expect(nicer).toEqual(getPriority() < 5 ? [[pid, 5]] : [])
  child.kill('SIGTERM')
  expect(await exit).toBe(0)
})

test('stops when its parent disconnects', async () => {
  const started = start({})
  await ports(started.child)
  started.child.disconnect()
  expect(await started.exit).toBe(0)
})

test('exits with 1 and one line of output for an invalid variable', async () => {
  const started = start({ VALIDATOR_WORKERS: 'many' })
  expect(await started.closed).toBe(1)
  expect(started.output().trim()).toBe('VALIDATOR_WORKERS must be a whole number from 1 to 256; got "many"')
})

test('does not load the modules that only the management service needs', async () => {
  const printLoads = `import { registerHooks } from 'node:module'
    registerHooks({ load: (url, context, next) => (console.error(url), next(url, context)) })`
  const preload = `--import=data:text/javascript,${encodeURIComponent(printLoads)}`
  const started = start({ VALIDATOR_WORKERS: 'many', NODE_OPTIONS: preload })
  await started.closed
  for (const loaded of ['services/validator/src/validator.ts', 'database/src/index.ts', 'license-file/src/spki.ts'])
    expect(started.output()).toContain(loaded)
  expect(started.output()).not.toMatch(/node_modules\/(?:kysely|@noble)\//)
})

test('exits with 1 and names the port when it is in use', async () => {
  const first = start({})
  const { port } = await ports(first.child)
  const second = start({ VALIDATOR_PORT: String(port) })
  expect(await second.closed).toBe(1)
  expect(second.output()).toContain(String(port))
  first.child.kill('SIGTERM')
  expect(await first.exit).toBe(0)
})

test('exits with 1 when its index is unusable', async () => {
  const table = new URL('../../../packages/engine/src/memory/linear-hash-table.ts', import.meta.url)
  const failingInsert = `import { LinearHashTable } from ${JSON.stringify(table.href)}
    LinearHashTable.prototype.insert = () => { throw new Error('injected') }`
  const started = start({ NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(failingInsert)}` })
  expect(await started.closed).toBe(1)
  expect(started.output()).toContain('index unusable')
  expect(started.output()).toContain('"stopped"')
})
