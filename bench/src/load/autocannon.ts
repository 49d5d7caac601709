/**
 * Sends the next request of a connection as soon as its response has arrived, with autocannon. autocannon's own histogram counts whole milliseconds, but most
 * responses take less, so latencies are measured from its events.
 */

import autocannon from 'autocannon'

import { type ApiVersion, type Check, checkBody, checkHeaders, checkPath, withNewMachine } from './checks.ts'
import { LatencyHistogram } from './histogram.ts'
import { codeOf, Tally, type LoadOutcome } from './outcome.ts'

interface AutocannonOptions {
  url: URL
  checks: readonly Check[]
  version: ApiVersion
  connections: number
  durationMs: number
  /** Receives the number of responses so far, about once a second. */
  onProgress?: (responses: number) => void
  signal?: AbortSignal | undefined
}

/** The number of requests of one connection. Each connection copies its requests, so the requests are divided among the connections. */
const REQUESTS_PER_CONNECTION = 1000

export async function runAutocannon(options: AutocannonOptions): Promise<LoadOutcome> {
  const latency = new LatencyHistogram()
  const statuses = new Tally()
  const codes = new Tally()
  const errors = new Tally()
  const requests = options.checks.map((check) => toRequest(check, options.version))
  let dealt = 0
  let firstMs = 0
  let lastMs = 0
  await new Promise<void>((resolve, reject) => {
    const instance = autocannon(
      {
        url: options.url.origin,
        connections: options.connections,
        duration: Math.max(1, options.durationMs / 1000),
        setupClient: (client) => {
          client.setRequests(deal(requests, dealt, options.connections))
          dealt += 1
        },
        verifyBody: (body) => {
          codes.add(codeOf(String(body)))
          return true
        },
      },
      (error: unknown) => (error instanceof Error ? reject(error) : resolve()),
    )
    instance.on('response', (_client, statusCode, _bytes, responseTimeMs) => {
      lastMs = performance.now()
      if (firstMs === 0) firstMs = lastMs
      latency.record(responseTimeMs * 1000)
      statuses.add(String(statusCode))
    })
    instance.on('reqError', (error: unknown) => errors.add(error instanceof Error ? error.message : String(error)))
    instance.on('tick', () => options.onProgress?.(latency.count))
    options.signal?.addEventListener('abort', () => instance.stop(), { once: true })
  })
  const durationMs = Math.max(1, lastMs - firstMs)
  return {
    generator: 'autocannon',
    requests: latency.count,
    durationMs,
    perSecond: (latency.count / durationMs) * 1000,
    latency: latency.summary(),
    statuses: statuses.toObject(),
    codes: codes.toObject(),
    errors: errors.toObject(),
    targetPerSecond: null,
  }
}

function toRequest(check: Check, version: ApiVersion): autocannon.Request {
  const body = checkBody(check, version)
  const request: autocannon.Request = {
    method: 'POST',
    path: checkPath(version),
    headers: checkHeaders(check),
    body,
  }
  if (check.kind !== 'new') return request
  return { ...request, setupRequest: (prepared) => ({ ...prepared, body: withNewMachine(body) }) }
}

function deal<T>(items: readonly T[], hand: number, hands: number): T[] {
  const size = Math.min(REQUESTS_PER_CONNECTION, items.length)
  const start = Math.floor((hand * items.length) / hands)
  return Array.from({ length: size }, (_, n) => items[(start + n) % items.length]).filter((item) => item !== undefined)
}
