import { createServer, type Server, type ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { endChildren, OPERATOR_TOKEN, type Service, startManagement, until, untilReady } from './support/children.ts'
import { send } from './support/client.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

/** Tests faults between a change and the delivery of its event to the endpoints of the vendor (docs/api.md#w5). */

const LOCAL = { WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8', WEBHOOK_ALLOWED_PORTS: 'all', WEBHOOK_ALLOW_HTTP: 'true' }

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let processes: Service[]
const servers: Server[] = []

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  processes = await Promise.all([startManagement(postgres.url, LOCAL), startManagement(postgres.url, LOCAL)])
  await Promise.all(processes.map((one) => untilReady(one)))
})
afterEach(async () => {
  await Promise.all(servers.splice(0).map((server) => close(server)))
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

async function close(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
}

interface Receiver {
  url: string
  /** The time of the first receipt of each event, by its id. */
  received: Map<string, number>
  attempts: () => number
}

/** Starts a receiver of webhooks. `respond` sends each response. */
async function startReceiver(respond: (response: ServerResponse) => void): Promise<Receiver> {
  const received = new Map<string, number>()
  let attempts = 0
  const server = createServer((incoming, response) => {
    incoming.resume()
    incoming.once('end', () => {
      attempts++
      const id = String(incoming.headers['webhook-id'])
      if (!received.has(id)) received.set(id, Date.now())
      respond(response)
    })
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  return { url: `http://127.0.0.1:${port}/`, received, attempts: () => attempts }
}

const created = z.object({ id: z.string(), managementToken: z.string().optional() })

/** Sends a request that must succeed. Retries while an overloaded service responds with 503. */
async function request(path: string, body: object, secret: string) {
  const { port } = processes[0]!
  const post = () => send(port, `/api/v1/${path}`, { body, secret, limitMs: 30_000 })
  let reply = await post()
  for (let retry = 0; reply.status === 503 && retry < 5; retry++) {
    await sleep(500)
    reply = await post()
  }
  if (reply.status !== 201) throw new Error(`${path}: ${reply.status} ${reply.text}`)
  return created.parse(JSON.parse(reply.text))
}

/** Waits until a receiver has received `count` events. Throws when no event arrives for 30 s. */
async function untilReceived({ received }: Receiver, count: number): Promise<void> {
  while (received.size < count) {
    const before = received.size
    await until(() => received.size > before)
  }
}

async function createVendor(): Promise<{ id: string; token: string }> {
  const { id, managementToken = '' } = await request(
    'organizations',
    { name: 'Acme', plan: 'STANDARD' },
    OPERATOR_TOKEN,
  )
  return { id, token: managementToken }
}

const respondWith = (status: number) => (response: ServerResponse) => void response.writeHead(status).end()

/** Creates a vendor with a product and a customer. */
async function createLicensing(): Promise<{ id: string; token: string; row: object }> {
  const { id, token } = await createVendor()
  const productId = (await request('products', { name: 'p' }, token)).id
  const customerId = (await request('customers', { email: 'a@example.com' }, token)).id
  return { id, token, row: { productId, customerId, policy: { type: 'PERPETUAL' } } }
}

/** Returns the values of a column of the organization's events about new licenses. */
async function eventsOf(organizationId: string, column: 'id' | 'resource_id'): Promise<string[]> {
  const { rows } = await pool.query<{ value: string }>(
    `select ${column} as value from events where organization_id = $1 and type = 'license.created'`,
    [organizationId],
  )
  return rows.map(({ value }) => value)
}

async function licensesOf(organizationId: string): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>('select id from licenses where organization_id = $1', [
    organizationId,
  ])
  return rows.map(({ id }) => id)
}

/** Calls `run` once with each number below `count`, with `lanes` calls at a time. */
async function inParallel(count: number, lanes: number, run: (i: number) => Promise<void>): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < count) await run(next++)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

test('changes that are rolled back leave no event, and each committed change leaves one event', async () => {
  const { id, token, row } = await createLicensing()
  await request('webhook-endpoints', { url: 'http://127.0.0.1:9/', types: ['license.created'] }, token)
  await request('licenses', { ...row, key: 'taken' }, token)
  const post = (i: number, path: string, body: object) =>
    send(processes[i % 2]!.port, `/api/v1/${path}`, { body, secret: token, limitMs: 30_000 })
  // The last license of each import has a key that exists, so the licenses and events before it are rolled back. An overloaded service
  // responds with 503.
  const rolledBack = byLength(40, 1_000)
  await inParallel(rolledBack, 8, async (i) => {
    const licenses = [row, { ...row, key: `rolled back ${i}` }, { ...row, key: 'taken' }]
    expect([409, 503]).toContain((await post(i, 'licenses/import', { licenses })).status)
  })
  expect(await eventsOf(id, 'id')).toHaveLength(1)
  // Every fourth request uses the key of another request, so one of these two requests fails.
  const changes = byLength(200, 10_000)
  const counts = { 201: 1, 409: 0, 503: 0 }
  await inParallel(changes, 8, async (i) => {
    const key = `key ${i % 4 === 3 ? i - 1 : i}`
    const { status } = await post(i, 'licenses', { ...row, key })
    if (status !== 201 && status !== 409 && status !== 503) throw new Error(`unexpected status ${status}`)
    counts[status]++
  })
  const resources = await eventsOf(id, 'resource_id')
  expect(resources.toSorted()).toEqual((await licensesOf(id)).toSorted())
  expect(resources.length - counts[201]).toBeGreaterThanOrEqual(0)
  expect(resources.length - counts[201]).toBeLessThanOrEqual(counts[503])
  const { rowCount } = await pool.query(`select from webhook_deliveries where organization_id = $1`, [id])
  expect(rowCount).toBe(resources.length)
  figure('events of concurrent changes', { 'rolled back': rolledBack, requests: changes, committed: resources.length })
})

test('healthy endpoints receive every event while processes are killed and other endpoints fail, hang or are unreachable', async () => {
  const { id, token, row } = await createLicensing()
  // The receiver responds slowly, so that attempts are in progress when a process is killed.
  const delayMs = byLength(100, 20)
  const healthy = await startReceiver((response) => void setTimeout(() => respondWith(204)(response), delayMs))
  const failing = await startReceiver(respondWith(500))
  const hanging = await startReceiver(() => undefined)
  const closed = 'http://127.0.0.1:9/'
  for (const url of [healthy.url, failing.url, hanging.url, closed])
    await request('webhook-endpoints', { url, types: ['license.created'] }, token)
  const licenses = Array.from({ length: byLength(2, 20) }, () => row)
  const requests = byLength(200, 5_000)
  const state = { begun: 0, done: 0 }
  const writers = inParallel(requests, 8, async () => {
    state.begun++
    // A process that is killed may have committed the change of its request. The stored licenses show which changes were committed.
    const { port } = processes[state.begun % 2]!
    const reply = await send(port, '/api/v1/licenses/import', {
      body: { licenses },
      secret: token,
      limitMs: 30_000,
    }).catch(() => null)
    if (reply?.status === 200) state.done++
    else await sleep(50)
  })
  const kills = byLength(2, 20)
  for (let kill = 0; kill < kills; kill++) {
    while (state.begun < ((kill + 1) * requests) / (kills + 1)) await sleep(20)
    const victim = kill % 2
    processes[victim]!.signal('SIGKILL')
    await processes[victim]!.exit
    processes[victim] = await startManagement(postgres.url, LOCAL)
  }
  await writers
  const expected = new Set(await eventsOf(id, 'id'))
  expect((await eventsOf(id, 'resource_id')).toSorted()).toEqual((await licensesOf(id)).toSorted())
  expect(expected.size).toBeGreaterThanOrEqual(state.done * licenses.length)
  await untilReceived(healthy, expected.size)
  expect(new Set(healthy.received.keys())).toEqual(expected)
  for (const other of [failing, hanging])
    expect([...other.received.keys()].filter((one) => !expected.has(one))).toEqual([])
  figure('webhooks while processes are killed', {
    changes: expected.size,
    kills,
    'repeated attempts': healthy.attempts() - expected.size,
  })
})

test('one process delivers each event soon after its commit while many events are written', async () => {
  await processes[1]!.stop()
  const { token, row } = await createLicensing()
  const receiver = await startReceiver(respondWith(204))
  const { url, received } = receiver
  await request('webhook-endpoints', { url, types: ['license.created'] }, token)
  const perSecond = byLength(200, 1_000)
  const seconds = byLength(2, 20)
  const licenses = Array.from({ length: perSecond / 10 }, () => row)
  const startMs = Date.now()
  for (let batch = 0; batch < seconds * 10; batch++) {
    const { status } = await send(processes[0]!.port, '/api/v1/licenses/import', {
      body: { licenses },
      secret: token,
      limitMs: 30_000,
    })
    expect(status).toBe(200)
    await sleep(Math.max(0, startMs + (batch + 1) * 100 - Date.now()))
  }
  const writtenMs = Date.now() - startMs
  await untilReceived(receiver, perSecond * seconds)
  const tookMs = Array.from(
    received,
    ([event, atMs]) => atMs - Number.parseInt(event.replace('-', '').slice(0, 12), 16),
  )
  const { p50, p99, most } = quantiles(tookMs)
  figure('webhooks from commit to receipt', {
    'events per second': Math.round((perSecond * seconds * 1_000) / writtenMs),
    'p50 ms': p50,
    'p99 ms': p99,
    'max ms': most,
  })
  expect(received.size).toBe(perSecond * seconds)
})
