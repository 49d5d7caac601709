/**
 * Defines the attacks: requests that a vendor, a user of an app, or a person without a credential can send. Each attack is a step that
 * its connections repeat as fast as they get responses. A step counts its responses by status.
 */

import { Agent } from 'node:http'
import { connect } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'

import { z } from 'zod'

import { type Reply, send, type Sent } from './http.ts'
import type { World } from './world.ts'

export interface AttackContext {
  world: World
  count: (status: number) => void
}

export interface Attack {
  name: string
  connections: number
  /** Runs one step. `n` numbers the steps of all connections in one sequence. */
  step: (context: AttackContext, n: number) => Promise<void>
}

const agent = new Agent({ keepAlive: true, maxSockets: 1_000 })
const VALIDATE = '/api/v2/license/validate'
const ACTIVATE = '/api/v1/activate'
const DEACTIVATE = '/api/v1/deactivate'
const ROWS_PER_IMPORT = 1_000
const RULES_PER_SET = 20_000
const HOLD_MS = 200

async function sendCounted(context: AttackContext, sent: Omit<Sent, 'agent'>): Promise<Reply> {
  const reply = await send({ ...sent, agent })
  context.count(reply.status)
  return reply
}

/** Returns a step that sends a check or a deactivation as the hostile organization. */
function onValidator(request: (world: World, n: number) => { path: string; body: object }): Attack['step'] {
  return async (context, n) => {
    const { path, body } = request(context.world, n)
    const { validatorPort: port, hostile } = context.world
    await sendCounted(context, { port, path, secret: hostile.apiKey, body: JSON.stringify(body) })
  }
}

/** Returns a step that sends a request to management, with the hostile organization's token unless `request` returns the field `secret`. */
function onManagement(request: (world: World, n: number) => Omit<Sent, 'agent' | 'port'>): Attack['step'] {
  return async (context, n) => {
    const sent = request(context.world, n)
    const secret = 'secret' in sent ? sent.secret : context.world.hostile.managementToken
    await sendCounted(context, {
      ...sent,
      secret,
      port: context.world.managementPort,
      path: sent.path.startsWith('/') ? sent.path : `/api/v1/${sent.path}`,
    })
  }
}

const of = <T>(list: readonly T[], n: number): T => list[n % list.length]!
const address = (n: number): string => `2001:db8:${(n >> 16).toString(16)}:${(n & 65_535).toString(16)}::1`
const idOf = (text: string): string => z.object({ id: z.string() }).safeParse(JSON.parse(text || '{}')).data?.id ?? ''

const huge = Buffer.from(`{"\\u0061":${'['.repeat(18)}${'0,'.repeat(1_000_000)}0${']'.repeat(18)}}`)
const bomb = gzipSync(huge)
const deep = `{"metadata":{"a":${'[{"b":'.repeat(10_000)}0${'}]'.repeat(10_000)}}}`
const metadata = JSON.stringify({ name: 'p', metadata: { a: 'x'.repeat(15_000) } })

/** Returns a step that sends a huge body to the endpoints that accept a body, in turn. */
const hugeBody = (secret: (world: World) => string | undefined, body = huge, headers = {}): Attack['step'] =>
  onManagement((world, n) => ({
    ...of(world.bodyEndpoints, n),
    secret: secret(world),
    body,
    headers,
    address: address(n),
  }))

const rules = (n: number): string =>
  JSON.stringify({
    rules: Array.from({ length: ROWS_PER_IMPORT }, (_, i) => {
      return { kind: 'BLACKLIST', type: 'HWID', value: `machine ${n} ${i}`, scope: 'ORGANIZATION' }
    }),
  })
/** Two lists of rules for one set. No rule is in both. */
const sets = [0, 1].map((list) =>
  JSON.stringify({
    rules: Array.from({ length: RULES_PER_SET }, (_, i) => {
      return { kind: 'BLACKLIST', type: 'HWID', value: `set ${list} ${i}`, scope: 'ORGANIZATION' }
    }),
  }),
)
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

/** Opens a connection, writes to it, and closes it after `HOLD_MS` without waiting for a response. */
function hold(port: number, text: string, context: AttackContext): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.on('error', () => undefined)
    socket.once('connect', () => {
      context.count(1)
      if (text !== '') socket.write(text)
      setTimeout(() => socket.destroy(), HOLD_MS)
    })
    socket.once('close', () => resolve())
  })
}

const headers = Object.fromEntries(Array.from({ length: 60 }, (_, i) => [`x-header-${i}`, 'x'.repeat(60)]))
/** The id of the customer to whom the last merge moved the licenses, or null before the first merge. */
let richCustomerId: string | null = null

export const ATTACKS: readonly Attack[] = [
  {
    name: 'deactivations of invented machines',
    connections: 64,
    step: onValidator(({ hostile }, n) => ({
      path: DEACTIVATE,
      body: { licenseKey: hostile.free[0]!, fingerprint: `x${n}` },
    })),
  },
  {
    name: 'activations and deactivations in turn',
    connections: 32,
    step: onValidator(({ hostile }, n) => ({
      path: n % 2 === 0 ? ACTIVATE : DEACTIVATE,
      body: { licenseKey: of(hostile.free, n >> 4), fingerprint: `m${(n >> 1) % 8}` },
    })),
  },
  {
    name: 'new machines on full licenses',
    connections: 64,
    step: onValidator(({ hostile }, n) => ({
      path: ACTIVATE,
      body: { licenseKey: of(hostile.full, n), fingerprint: `x${n}` },
    })),
  },
  {
    name: 'new machines on licenses with free slots',
    connections: 64,
    step: onValidator(({ hostile }, n) => ({
      path: ACTIVATE,
      body: { licenseKey: of(hostile.free, n), fingerprint: `y${n}` },
    })),
  },
  {
    name: 'new machines on licenses without a limit',
    connections: 64,
    step: onValidator(({ hostile }, n) => ({
      path: ACTIVATE,
      body: { licenseKey: of(hostile.unlimited, n), fingerprint: `z${n}` },
    })),
  },
  {
    name: 'long machine ids on full licenses',
    connections: 64,
    step: onValidator(({ hostile }, n) => ({
      path: ACTIVATE,
      body: { licenseKey: of(hostile.full, n), fingerprint: String(n).padStart(500, 'x') },
    })),
  },
  {
    name: 'huge bodies to the validator, with an API key and without',
    connections: 16,
    async step(context, n) {
      const { validatorPort: port, hostile } = context.world
      const path = of([VALIDATE, ACTIVATE, DEACTIVATE, '/api/v1/public-keys'], n >> 1)
      await sendCounted(context, { port, path, secret: n % 2 === 0 ? hostile.apiKey : undefined, body: huge })
    },
  },
  {
    name: 'slow JSON in checks',
    connections: 32,
    step: onValidator((_world, n) => ({
      path: VALIDATE,
      body: Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`a${n}${i}`, i])),
    })),
  },
  {
    name: 'unknown API keys',
    connections: 32,
    async step(context, n) {
      const { validatorPort: port, quiet } = context.world
      const secret = `kwk_${String(n).padStart(36, '0')}`
      await sendCounted(context, { port, path: VALIDATE, secret, body: JSON.stringify({ license: quiet.known }) })
    },
  },
  {
    name: 'connections to the validator',
    connections: 500,
    step: (context) => hold(context.world.validatorPort, `POST ${VALIDATE} HTTP/1.1\r\nhost: x\r\n`, context),
  },
  {
    name: 'many headers to both services',
    connections: 32,
    async step(context, n) {
      const { validatorPort, managementPort } = context.world
      const port = n % 2 === 0 ? validatorPort : managementPort
      await sendCounted(context, { port, path: '/api/v1/organization', headers })
    },
  },
  { name: 'huge bodies without a credential', connections: 12, step: hugeBody(() => undefined) },
  {
    name: 'huge bodies with a wrong credential',
    connections: 12,
    step: hugeBody(({ hostile }) => hostile.apiKey.replaceAll('a', 'b')),
  },
  { name: 'huge bodies with an API key', connections: 12, step: hugeBody(({ hostile }) => hostile.apiKey) },
  { name: 'huge bodies with a token', connections: 12, step: hugeBody(({ hostile }) => hostile.managementToken) },
  {
    name: 'compressed huge bodies with a token',
    connections: 12,
    step: hugeBody(({ hostile }) => hostile.managementToken, bomb, { 'content-encoding': 'gzip' }),
  },
  {
    name: 'deep bodies with a token',
    connections: 12,
    step: onManagement(() => ({ path: 'products', body: deep })),
  },
  {
    name: 'list filters over all licenses',
    connections: 24,
    step: onManagement((_world, n) => ({ method: 'GET', path: of(FILTERS, n) })),
  },
  {
    name: 'dry runs',
    connections: 24,
    step: onManagement(({ hostile }, n) => ({
      path: 'access-rules/evaluate',
      body: JSON.stringify({ licenseKey: of(hostile.full, n), ip: '203.0.113.7', machineId: 'm', country: 'DE' }),
    })),
  },
  {
    name: 'license files from many addresses',
    connections: 24,
    step: onManagement(({ hostile }, n) => ({
      path: 'licenses/file',
      secret: hostile.apiKey,
      address: address(n),
      body: JSON.stringify({ licenseKey: of(hostile.unlimited, n), fingerprint: `m${n}` }),
    })),
  },
  {
    name: "a stranger with the quiet organization's API key",
    connections: 24,
    step: onManagement(({ quiet }, n) => ({
      ...(n % 2 === 0 ? { method: 'GET', path: 'products' } : { path: 'licenses/file', body: '{"licenseKey":"x"}' }),
      secret: quiet.apiKey,
      address: '198.51.100.9',
    })),
  },
  {
    name: 'imports of rules in a loop',
    connections: 8,
    step: onManagement((_world, n) => ({ path: 'access-rules/import', body: rules(n) })),
  },
  {
    name: 'sets of 20,000 rules in a loop',
    connections: 4,
    step: onManagement((_world, n) => ({ method: 'PUT', path: 'access-rules/sets/set', body: of(sets, n) })),
  },
  {
    name: 'imports of licenses in a loop',
    connections: 8,
    step: onManagement((world) => ({ path: 'licenses/import', body: licenses(world) })),
  },
  {
    name: 'merges of 100,000 licenses in a loop',
    connections: 1,
    async step(context) {
      const { managementPort: port, hostile } = context.world
      const request = { port, secret: hostile.managementToken }
      const made = await sendCounted(context, {
        ...request,
        path: '/api/v1/customers',
        body: '{"email":"b@example.com"}',
      })
      const into = idOf(made.text)
      const from = richCustomerId ?? hostile.richCustomerId
      const path = `/api/v1/customers/${from}/merge`
      const { status } = await sendCounted(context, { ...request, path, body: JSON.stringify({ into }) })
      if (status === 200) richCustomerId = into
      else if (status === 404) richCustomerId = null
    },
  },
  {
    name: 'rules that expire at once',
    connections: 12,
    step: onManagement((_world, n) => ({
      path: 'access-rules',
      body: JSON.stringify({
        kind: 'BLACKLIST',
        type: 'HWID',
        value: `e${n}`,
        scope: 'ORGANIZATION',
        expiresAt: new Date(Date.now() + 1_000).toISOString(),
      }),
    })),
  },
  {
    name: 'API keys made and revoked',
    connections: 12,
    async step(context) {
      const request = { port: context.world.managementPort, secret: context.world.hostile.managementToken }
      const { text } = await sendCounted(context, { ...request, path: '/api/v1/api-keys', body: '{"name":"k"}' })
      const id = idOf(text)
      if (id === '') await sleep(5)
      else await sendCounted(context, { ...request, method: 'DELETE', path: `/api/v1/api-keys/${id}` })
    },
  },
  {
    name: 'tokens made, used and revoked',
    connections: 12,
    async step(context) {
      const { managementPort: port, hostile } = context.world
      const request = { port, secret: hostile.managementToken }
      const body = '{"name":"t","permissions":["products.read"]}'
      const { text } = await sendCounted(context, { ...request, path: '/api/v1/tokens', body })
      const made = z.object({ id: z.string(), secret: z.string() }).safeParse(JSON.parse(text || '{}')).data
      if (!made) return
      for (let i = 0; i < 10; i++)
        await sendCounted(context, { port, secret: made.secret, method: 'GET', path: '/api/v1/products' })
      await sendCounted(context, { ...request, method: 'DELETE', path: `/api/v1/tokens/${made.id}` })
    },
  },
  {
    name: 'changes that wait for the validators',
    connections: 150,
    step: onManagement((_world, n) => ({
      path: 'access-rules',
      headers: { prefer: 'wait=10' },
      body: JSON.stringify({ kind: 'BLACKLIST', type: 'HWID', value: `w${n}`, scope: 'ORGANIZATION' }),
    })),
  },
  {
    name: 'idempotency keys with large responses',
    connections: 12,
    step: onManagement((_world, n) => ({
      path: 'products',
      headers: { 'idempotency-key': `${process.pid}-${n}` },
      body: metadata,
    })),
  },
  {
    name: 'guesses from one address',
    connections: 24,
    step: onManagement((_world, n) => ({
      method: 'GET',
      path: 'products',
      secret: `kwm_${String(n).padStart(36, '0')}`,
      address: '198.51.100.7',
    })),
  },
  {
    name: 'guesses from many addresses',
    connections: 24,
    step: onManagement(({ hostile }, n) => ({
      method: 'GET',
      path: 'products',
      secret: hostile.managementToken.replace(/\d/, String(n % 10)),
      address: address(n),
    })),
  },
  {
    name: 'no credential',
    connections: 24,
    step: onManagement(() => ({ method: 'GET', path: 'products', secret: undefined })),
  },
  {
    name: 'connections to management',
    connections: 500,
    step: (context) => hold(context.world.managementPort, 'POST /api/v1/products HTTP/1.1\r\nhost: x\r\n', context),
  },
]
