/**
 * Defines the attacks: requests that a vendor, a user of an app, or a person without a credential can send. Each attack is a step that
 * its connections repeat as fast as they get responses. A step counts its responses by status.
 */

import { Agent, createServer } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

import { z } from 'zod'

import { type Reply, send, type Sent } from './http.ts'
import type { World } from './world.ts'

interface AttackContext {
  world: World
  count: (status: number) => void
}

/** Runs one step. `n` numbers the steps of all connections in one sequence. */
type Step = (context: AttackContext, n: number) => Promise<unknown>

/** A step, and the number of connections that repeat it. */
interface Load {
  connections: number
  step: Step
}

interface Attack extends Load {
  name: string
}

type Request = Omit<Sent, 'agent' | 'port'>

const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })
const VALIDATE = '/api/v2/license/validate'
const ACTIVATE = '/api/v1/activate'
const DEACTIVATE = '/api/v1/deactivate'
const BATCH = '/api/v2/license/validate/batch'
const CHECKS_PER_BATCH = 100
const ROWS_PER_IMPORT = 1_000
const RULES_PER_SET = 20_000
const HOLD_MS = 200

async function sendCounted(context: AttackContext, sent: Omit<Sent, 'agent'>): Promise<Reply> {
  const reply = await send({ ...sent, agent })
  context.count(reply.status)
  return reply
}

/** Sends a request to management, with the hostile organization's token unless the request has the field `secret`. */
function toManagement(context: AttackContext, request: Request): Promise<Reply> {
  const { managementPort: port, hostile } = context.world
  const path = request.path.startsWith('/') ? request.path : `/api/v1/${request.path}`
  return sendCounted(context, { secret: hostile.managementToken, ...request, port, path })
}

const load = (connections: number, step: Step): Load => ({ connections, step })

const onManagement = (connections: number, request: (world: World, n: number) => Request): Load =>
  load(connections, (context, n) => toManagement(context, request(context.world, n)))

/** Sends a check, an activation or a deactivation as the hostile organization. */
const onValidator = (connections: number, request: (world: World, n: number) => { path: string; body: object }): Load =>
  load(connections, (context, n) => {
    const { validatorPort: port, hostile } = context.world
    const { path, body } = request(context.world, n)
    return sendCounted(context, { port, path, secret: hostile.apiKey, body: JSON.stringify(body) })
  })

/** Activates or deactivates a machine of a hostile license. `choose` returns the license key and the machine id. */
const onMachine = (
  connections: number,
  choose: (hostile: World['hostile'], n: number) => [licenseKey: string, fingerprint: string],
  pathOf: (n: number) => string = () => ACTIVATE,
): Load =>
  onValidator(connections, ({ hostile }, n) => {
    const [licenseKey, fingerprint] = choose(hostile, n)
    return { path: pathOf(n), body: { licenseKey, fingerprint } }
  })

/** Sends batches of checks as the hostile organization. `choose` returns the license key and the machine id of the check with number `n`. */
const onBatch = (
  connections: number,
  choose: (hostile: World['hostile'], n: number) => [license: string, fingerprint: string],
): Load =>
  onValidator(connections, ({ hostile }, n) => {
    const checks = Array.from({ length: CHECKS_PER_BATCH }, (_, i) => {
      const [license, fingerprint] = choose(hostile, n * CHECKS_PER_BATCH + i)
      return { license, fingerprint }
    })
    return { path: BATCH, body: { checks } }
  })

const of = <T>(list: readonly T[], n: number): T => list[n % list.length]!
const address = (n: number): string => `2001:db8:${(n >> 16).toString(16)}:${(n & 65_535).toString(16)}::1`
const idOf = (text: string): string => z.object({ id: z.string() }).safeParse(JSON.parse(text || '{}')).data?.id ?? ''

const huge = Buffer.from(`{"\\u0061":${'['.repeat(18)}${'0,'.repeat(1_000_000)}0${']'.repeat(18)}}`)
const bomb = gzipSync(huge)
const deep = `{"metadata":{"a":${'[{"b":'.repeat(10_000)}0${'}]'.repeat(10_000)}}}`
const metadata = JSON.stringify({ name: 'p', metadata: { a: 'x'.repeat(15_000) } })
const headers = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x-header-${i}`, 'x'.repeat(60)]))

/** Sends a huge body to the endpoints that accept a body, in turn. */
const hugeBody = (secretOf: (world: World) => string | undefined, body = huge, more = {}): Load =>
  onManagement(12, (world, n) => {
    const request = { ...of(world.bodyEndpoints, n), secret: secretOf(world), address: address(n) }
    return { ...request, body, headers: more }
  })

const rule = (value: string) => ({ kind: 'BLACKLIST', type: 'HWID', value, scope: 'ORGANIZATION' })
const rules = (count: number, name: string): string =>
  JSON.stringify({ rules: Array.from({ length: count }, (_, i) => rule(`${name} ${i}`)) })
/** Two lists of rules for one set. No rule is in both. */
const sets = ['set 0', 'set 1'].map((name) => rules(RULES_PER_SET, name))
const licenses = ({ hostile: { productId, customerId } }: World): string =>
  JSON.stringify({
    licenses: Array.from({ length: ROWS_PER_IMPORT }, () => ({ productId, customerId, policy: { type: 'PERPETUAL' } })),
  })

const FILTERS = [
  'licenses?status=revoked',
  'licenses?status=suspended',
  'licenses?status=expired',
  'access-rules?expired=true',
  'access-rules?type=COUNTRY',
  'access-rules?value=203.0.113.7',
  'customers?email=nobody@example.com',
  'analytics/checks?interval=day&from=2025-01-01T00:00:00Z&to=2026-01-01T00:00:00Z',
  'audit-log',
  'activity',
  'organization',
]

/** Opens a connection, writes the start of a request, and closes it after `HOLD_MS` without waiting for a response. */
function hold(port: number, path: string, context: AttackContext): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.once('connect', () => {
      context.count(1)
      socket.write(`POST ${path} HTTP/1.1\r\nhost: x\r\n`)
      setTimeout(() => socket.destroy(), HOLD_MS)
    })
    socket.once('close', () => resolve())
  })
}

/** The id of the customer to whom the last merge moved the licenses, or null before the first merge. */
let richCustomerId: string | null = null

async function mergeCustomers(context: AttackContext): Promise<void> {
  const made = await toManagement(context, { path: 'customers', body: '{"email":"b@example.com"}' })
  const into = idOf(made.text)
  const path = `customers/${richCustomerId ?? context.world.hostile.richCustomerId}/merge`
  const { status } = await toManagement(context, { path, body: JSON.stringify({ into }) })
  if (status === 200) richCustomerId = into
  else if (status === 404) richCustomerId = null
}

async function makeApiKey(context: AttackContext): Promise<void> {
  const id = idOf((await toManagement(context, { path: 'api-keys', body: '{"name":"k"}' })).text)
  if (id === '') await sleep(5)
  else await toManagement(context, { method: 'DELETE', path: `api-keys/${id}` })
}

async function makeToken(context: AttackContext): Promise<void> {
  const body = '{"name":"t","permissions":["products.read"]}'
  const { text } = await toManagement(context, { path: 'tokens', body })
  const made = z.object({ id: z.string(), secret: z.string() }).safeParse(JSON.parse(text || '{}')).data
  if (!made) return
  for (let i = 0; i < 10; i++) await toManagement(context, { method: 'GET', path: 'products', secret: made.secret })
  await toManagement(context, { method: 'DELETE', path: `tokens/${made.id}` })
}

const LOADS: Readonly<Record<string, Load>> = {
  'deactivations of invented machines': onMachine(
    64,
    ({ free }, n) => [free[0]!, `x${n}`],
    () => DEACTIVATE,
  ),
  'activations and deactivations in turn': onMachine(
    32,
    ({ free }, n) => [of(free, n >> 4), `m${(n >> 1) % 8}`],
    (n) => of([ACTIVATE, DEACTIVATE], n),
  ),
  'new machines on full licenses': onMachine(64, ({ full }, n) => [of(full, n), `x${n}`]),
  'new machines on licenses with free slots': onMachine(64, ({ free }, n) => [of(free, n), `y${n}`]),
  'new machines on licenses without a limit': onMachine(64, ({ unlimited }, n) => [of(unlimited, n), `z${n}`]),
  'long machine ids on full licenses': onMachine(64, ({ full }, n) => [of(full, n), String(n).padStart(500, 'x')]),
  'unknown licenses': onValidator(64, (_hostile, n) => ({ path: VALIDATE, body: { license: `none ${n}` } })),
  'batches of unknown licenses': onBatch(64, (_hostile, n) => [`none ${n}`, `b${n}`]),
  'batches of new machines on licenses with free slots': onBatch(64, ({ free }, n) => [of(free, n), `c${n}`]),
  'batches of new machines on licenses without a limit': onBatch(64, ({ unlimited }, n) => [of(unlimited, n), `d${n}`]),
  'huge bodies to the validator, with an API key and without': load(16, (context, n) => {
    const { validatorPort: port, hostile } = context.world
    const path = of([VALIDATE, ACTIVATE, DEACTIVATE, '/api/v1/public-keys'], n >> 1)
    return sendCounted(context, { port, path, secret: of([hostile.apiKey, undefined], n), body: huge })
  }),
  'slow JSON in checks': onValidator(32, (_world, n) => {
    return { path: VALIDATE, body: Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`a${n}${i}`, i])) }
  }),
  'unknown API keys': load(32, (context, n) => {
    const { validatorPort: port, quiet } = context.world
    const secret = `kwk_${String(n).padStart(36, '0')}`
    return sendCounted(context, { port, path: VALIDATE, secret, body: JSON.stringify({ license: quiet.known }) })
  }),
  'connections to the validator': load(500, (context) => hold(context.world.validatorPort, VALIDATE, context)),
  'many headers to both services': load(32, (context, n) => {
    const port = of([context.world.validatorPort, context.world.managementPort], n)
    return sendCounted(context, { port, path: '/api/v1/organization', headers })
  }),
  'huge bodies without a credential': hugeBody(() => undefined),
  'huge bodies with a wrong credential': hugeBody(({ hostile }) => hostile.apiKey.replaceAll('a', 'b')),
  'huge bodies with an API key': hugeBody(({ hostile }) => hostile.apiKey),
  'huge bodies with a token': hugeBody(({ hostile }) => hostile.managementToken),
  'compressed huge bodies with a token': hugeBody(({ hostile }) => hostile.managementToken, bomb, {
    'content-encoding': 'gzip',
  }),
  'deep bodies with a token': onManagement(12, () => ({ path: 'products', body: deep })),
  'list filters over all licenses': onManagement(24, (_world, n) => ({ method: 'GET', path: of(FILTERS, n) })),
  'dry runs': onManagement(24, ({ hostile }, n) => {
    const check = { licenseKey: of(hostile.full, n), ip: '203.0.113.7', machineId: 'm', country: 'DE' }
    return { path: 'access-rules/evaluate', body: JSON.stringify(check) }
  }),
  'license files from many addresses': onManagement(24, ({ hostile }, n) => {
    const body = JSON.stringify({ licenseKey: of(hostile.unlimited, n), fingerprint: `m${n}` })
    return { path: 'licenses/file', secret: hostile.apiKey, address: address(n), body }
  }),
  "a stranger with the quiet organization's API key": onManagement(24, ({ quiet: { apiKey: secret } }, n) => {
    const request =
      n % 2 === 0 ? { method: 'GET', path: 'products' } : { path: 'licenses/file', body: '{"licenseKey":"x"}' }
    return { ...request, secret, address: '198.51.100.9' }
  }),
  'imports of rules in a loop': onManagement(8, (_world, n) => {
    return { path: 'access-rules/import', body: rules(ROWS_PER_IMPORT, `machine ${n}`) }
  }),
  'sets of 20,000 rules in a loop': onManagement(4, (_world, n) => {
    return { method: 'PUT', path: 'access-rules/sets/set', body: of(sets, n) }
  }),
  'imports of licenses in a loop': onManagement(8, (world) => ({ path: 'licenses/import', body: licenses(world) })),
  'merges of 100,000 licenses in a loop': load(1, mergeCustomers),
  'rules that expire at once': onManagement(12, (_world, n) => {
    const expiresAt = new Date(Date.now() + 1_000).toISOString()
    return { path: 'access-rules', body: JSON.stringify({ ...rule(`e${n}`), expiresAt }) }
  }),
  'API keys made and revoked': load(12, makeApiKey),
  'tokens made, used and revoked': load(12, makeToken),
  'changes that wait for the validators': onManagement(150, (_world, n) => {
    return { path: 'access-rules', headers: { prefer: 'wait=10' }, body: JSON.stringify(rule(`w${n}`)) }
  }),
  'idempotency keys with large responses': onManagement(12, (_world, n) => {
    return { path: 'products', headers: { 'idempotency-key': `${process.pid}-${n}` }, body: metadata }
  }),
  'guesses from one address': onManagement(24, (_world, n) => {
    const secret = `kwm_${String(n).padStart(36, '0')}`
    return { method: 'GET', path: 'products', secret, address: '198.51.100.7' }
  }),
  'guesses from many addresses': onManagement(24, ({ hostile }, n) => {
    const secret = hostile.managementToken.replace(/\d/, String(n % 10))
    return { method: 'GET', path: 'products', secret, address: address(n) }
  }),
  'no credential': onManagement(24, () => ({ method: 'GET', path: 'products', secret: undefined })),
  'connections to management': load(500, (context) => hold(context.world.managementPort, '/api/v1/products', context)),
}

/** The port of a server in this process that sends empty responses. The server starts with the first request. */
let ownPort: Promise<number> | null = null

function startServer(): Promise<number> {
  const server = createServer((request, response) => request.resume().on('end', () => response.end()))
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => {
      const found = server.address()
      resolve(typeof found === 'object' && found ? found.port : 0)
    })
  })
}

const toItself = (connections: number, body?: Buffer): Load =>
  load(connections, async (context) => {
    ownPort ??= startServer()
    return sendCounted(context, { port: await ownPort, path: '/', body })
  })

/**
 * Attacks in which the attackers' process sends requests only to itself. They delay the quiet organization only because all processes of
 * the bench share the processors.
 */
const CONTROLS: Readonly<Record<string, Load>> = {
  'control: small requests that reach no service': toItself(24),
  'control: bodies of 2 MiB that reach no service': toItself(12, Buffer.alloc(2 * 1024 * 1024, 'x')),
}

export const ATTACKS: readonly Attack[] = Object.entries({ ...CONTROLS, ...LOADS }).map(([name, attack]) => {
  return Object.assign({ name }, attack)
})
