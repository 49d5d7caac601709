/**
 * Measures the delivery of webhooks by one management process. Events and deliveries are inserted at a fixed rate by SQL, as changes insert
 * them. Rounds without and with deliveries alternate, and requests of another vendor run in both, so that the rounds show how much slower
 * deliveries make these requests.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { createPool, uuidv7 } from '@keyward/database'
import type { Pool } from 'pg'
import { z } from 'zod'

import { startChild } from '../harness/children.ts'
import { numbersFrom, runMain } from '../harness/command-line.ts'
import { type Call, caller, OPERATOR_TOKEN, startManagement } from '../harness/management-api.ts'
import { percentiles, type Percentiles } from '../harness/stats.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { cpuMs, postgresCpuMs } from '../harness/usage.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/webhooks.ts [options]

  --rate N          events a second, each for one endpoint (default 1000)
  --endpoints N     endpoints, 5 of each organization (default 50)
  --seconds N       seconds of a round (default 20)
  --rounds N        rounds without and with deliveries (default 3)
  --requests N      requests a second of another vendor (default 20)
  --help

Writes bench/results/webhooks.json.`

const ENDPOINTS_OF_ORGANIZATION = 5
const BATCH_MS = 20
const RECEIVE_LIMIT_MS = 60_000
const POLL_MS = 200
const LOOPBACK = {
  WEBHOOK_ALLOWED_NETWORKS: '127.0.0.0/8',
  WEBHOOK_ALLOWED_PORTS: 'all',
  WEBHOOK_ALLOW_HTTP: 'true',
}

/** The data of an event about a new license. */
const DATA = JSON.stringify({
  resource: {
    id: uuidv7(),
    key: 'K7QX-93FM-TTRW-H2ZD',
    productId: uuidv7(),
    customerId: uuidv7(),
    status: 'ACTIVE',
    policy: { type: 'SUBSCRIPTION', maxMachines: 5, expiresAt: '2030-01-01T00:00:00.000Z', leaseSeconds: null },
    entitlements: { edition: 'pro', seats: 5 },
    metadata: { order: '1001', note: 'bought by card' },
    createdAt: '2026-11-22T14:22:02.547Z',
    updatedAt: '2026-11-22T14:22:02.547Z',
  },
  actor: { type: 'TOKEN', id: uuidv7() },
})

const created = z.object({ id: z.string() })
const vendorSchema = z.object({ id: z.string(), managementToken: z.string() })
const receivedSchema = z.object({
  received: z.number(),
  repeated: z.number(),
  ms: z.object({ p50: z.number(), p99: z.number(), max: z.number() }),
})

interface Sizes {
  rate: number
  endpoints: number
  seconds: number
  rounds: number
  requests: number
}

interface Endpoint {
  organizationId: string
  endpointId: string
}

/** The times of the other vendor's requests, in milliseconds. */
type Requests = Record<'read' | 'change', number[]>

interface Round {
  /** The figures of the receiver, or null in a round without deliveries. */
  deliveries: z.infer<typeof receivedSchema> | null
  eventsPerSecond: number
  managementCpuMsPerEvent: number
  postgresCpuMsPerEvent: number
  requests: Requests
}

await runMain('webhooks', async () => {
  const sizes = numbersFrom(HELP, { rate: 1_000, endpoints: 50, seconds: 20, rounds: 3, requests: 20 })
  if (sizes === null) return
  await withPostgres(
    async (url, pid) => {
      const data = await measure(url, pid, sizes)
      console.log(JSON.stringify(data, null, 2))
      console.log(writeResult('webhooks', data))
    },
    { max_wal_size: '4GB' },
  )
})

async function measure(url: string, postmaster: number, sizes: Sizes): Promise<object> {
  const receiver = await startChild({ file: new URL('../harness/webhook-receiver.ts', import.meta.url).pathname })
  const management = await startManagement(url, undefined, LOOPBACK)
  const pool = createPool(url, { name: 'webhooks', max: 2 })
  try {
    const endpoints = await createEndpoints(management.port, receiver.port, sizes.endpoints)
    const request = await prepareRequests(management.port)
    const cpu = () => [cpuMs(management.pid) ?? 0, postgresCpuMs(postmaster)] as const
    const round = (isDelivered: boolean): Promise<Round> =>
      run(pool, receiver.port, isDelivered, endpoints, request, sizes, cpu)
    await run(pool, receiver.port, true, endpoints, request, { ...sizes, seconds: 3 }, cpu) // warms up
    const rounds: Record<'written' | 'delivered', Round[]> = { written: [], delivered: [] }
    for (let i = 0; i < sizes.rounds; i++) {
      rounds.written.push(await round(false))
      rounds.delivered.push(await round(true))
    }
    return { sizes, written: summaryOf(rounds.written), delivered: summaryOf(rounds.delivered) }
  } finally {
    await pool.end()
    await management.stop()
    await receiver.stop()
  }
}

function summaryOf(rounds: readonly Round[]): object {
  const requests = (kind: keyof Requests): Percentiles => percentiles(rounds.flatMap((round) => round.requests[kind]))
  return {
    rounds: rounds.map(({ requests: { read, change }, ...rest }) => ({
      ...rest,
      requests: read.length + change.length,
    })),
    requests: { read: requests('read'), change: requests('change') },
  }
}

async function createEndpoints(port: number, receiverPort: number, count: number): Promise<Endpoint[]> {
  const operator = caller(port, OPERATOR_TOKEN)
  const endpoints: Endpoint[] = []
  while (endpoints.length < count) {
    const { value: vendor } = await operator('POST', 'organizations', vendorSchema, { name: 'Bench', plan: 'STANDARD' })
    const call = caller(port, vendor.managementToken)
    for (let i = 0; i < ENDPOINTS_OF_ORGANIZATION && endpoints.length < count; i++) {
      const url = `http://127.0.0.1:${receiverPort}/${endpoints.length}`
      const { value } = await call('POST', 'webhook-endpoints', created, { url, types: ['license.*'] })
      endpoints.push({ organizationId: vendor.id, endpointId: value.id })
    }
  }
  return endpoints
}

/** Creates a vendor without endpoints. Returns a function that sends one read and one change. */
async function prepareRequests(port: number): Promise<(times: Requests) => Promise<void>> {
  const { value } = await caller(port, OPERATOR_TOKEN)('POST', 'organizations', vendorSchema, {
    name: 'Quiet',
    plan: 'STANDARD',
  })
  const call: Call = caller(port, value.managementToken)
  const productId = (await call('POST', 'products', created, { name: 'p' })).value.id
  const customerId = (await call('POST', 'customers', created, { email: 'a@example.com' })).value.id
  const license = { productId, customerId, policy: { type: 'PERPETUAL' } }
  const { id } = (await call('POST', 'licenses', created, license)).value
  let turn = 0
  return async (times) => {
    times.read.push((await call('GET', 'licenses?limit=20', z.unknown())).ms)
    times.change.push((await call('PATCH', `licenses/${id}`, created, { metadata: { turn: `${turn++}` } })).ms)
  }
}

/** Runs a round. `cpu` returns the processor times of management and of Postgres in milliseconds. */
async function run(
  pool: Pool,
  receiverPort: number,
  isDelivered: boolean,
  endpoints: readonly Endpoint[],
  request: (times: Requests) => Promise<void>,
  { rate, seconds, requests: requestsPerSecond }: Sizes,
  cpu: () => readonly [number, number],
): Promise<Round> {
  const [managementBefore, postgresBefore] = cpu()
  const startedMs = Date.now()
  const endMs = startedMs + seconds * 1_000
  const requests: Requests = { read: [], change: [] }
  const sendRequests = async (): Promise<void> => {
    for (let dueMs = startedMs; dueMs < endMs; dueMs += 2_000 / requestsPerSecond) {
      await sleep(Math.max(0, dueMs - Date.now()))
      await request(requests)
    }
  }
  const batch = Math.round((rate * BATCH_MS) / 1_000)
  let events = 0
  let writtenMs = 0
  const writeEvents = async (): Promise<void> => {
    for (let dueMs = startedMs; dueMs < endMs; dueMs += BATCH_MS) {
      await sleep(Math.max(0, dueMs - Date.now()))
      await insertEvents(pool, endpoints, events, batch, isDelivered)
      events += batch
    }
    writtenMs = Date.now() - startedMs
  }
  await Promise.all([sendRequests(), writeEvents()])
  const deliveries = isDelivered ? await untilReceived(receiverPort, events) : null
  const [managementAfter, postgresAfter] = cpu()
  const perEvent = (ms: number): number => Math.round((ms / events) * 1_000) / 1_000
  return {
    deliveries,
    eventsPerSecond: Math.round((events * 1_000) / writtenMs),
    managementCpuMsPerEvent: perEvent(managementAfter - managementBefore),
    postgresCpuMsPerEvent: perEvent(postgresAfter - postgresBefore),
    requests,
  }
}

/** Inserts `count` events for the endpoints in turn and, if `isDelivered` is true, a delivery of each event, in one transaction. */
async function insertEvents(
  pool: Pool,
  endpoints: readonly Endpoint[],
  first: number,
  count: number,
  isDelivered: boolean,
): Promise<void> {
  const chosen = Array.from({ length: count }, (_, i) => endpoints[(first + i) % endpoints.length]!)
  await pool.query(
    `with written as (
       insert into events (id, organization_id, type, resource_id, data)
       select n.id, n.organization_id, 'license.created', new_id(), $4::json
       from unnest($1::uuid[], $2::uuid[]) as n (id, organization_id)
     )
     insert into webhook_deliveries (id, organization_id, endpoint_id, event_id, event_type, cause)
     select new_id(), n.organization_id, n.endpoint_id, n.id, 'license.created', 'EVENT'
     from unnest($1::uuid[], $2::uuid[], $3::uuid[]) as n (id, organization_id, endpoint_id)
     where $5`,
    [
      chosen.map(() => uuidv7()),
      chosen.map(({ organizationId }) => organizationId),
      chosen.map(({ endpointId }) => endpointId),
      DATA,
      isDelivered,
    ],
  )
}

/** Waits until the receiver has received the events. Returns its figures and clears them. Throws after RECEIVE_LIMIT_MS. */
async function untilReceived(port: number, events: number): Promise<z.infer<typeof receivedSchema>> {
  const url = `http://127.0.0.1:${port}/`
  const limitMs = Date.now() + RECEIVE_LIMIT_MS
  for (;;) {
    const figures = receivedSchema.parse(await (await fetch(url)).json())
    if (figures.received === events) {
      await fetch(url, { method: 'DELETE' })
      return figures
    }
    if (Date.now() > limitMs) throw new Error(`${figures.received} of ${events} events were received`)
    await sleep(POLL_MS)
  }
}
