/** Tests the log line of a request, and the trace that the request continues. */

import { once } from 'node:events'
import { createServer } from 'node:http'

import { currentTrace } from '@keyward/runtime'
import express from 'express'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { accessLog } from '../../src/http/access-log.ts'
import { requestIds } from '../../src/http/headers.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor } from '../support/vendor.ts'

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736'
const TRACEPARENT = `00-${TRACE}-00f067aa0ba902b7-01`

const lines: unknown[] = []
const app = express()
app.use(requestIds(), accessLog({ info: (line: unknown) => void lines.push(line) }))
app.get('/things/:id', async (_request, response) => {
  await new Promise((resolve) => setTimeout(resolve, 1))
  response.json(currentTrace())
})
app.get('/never', (request) => request.socket.destroy())
const server = createServer(app)

/** The `traceparent` headers that the validator of this test has received. The validator returns no verdict. */
const received: unknown[] = []
const validator = createServer((request, response) => {
  received.push(request.headers['traceparent'])
  response.writeHead(500).end()
})
const portOf = (listening: typeof server): number => {
  const address = listening.address()
  return typeof address === 'object' && address !== null ? address.port : 0
}
let harness: Harness

beforeAll(async () => {
  await Promise.all([server, validator].map((one) => once(one.listen(0, '127.0.0.1'), 'listening')))
  harness = await startHarness({ VALIDATOR_ADMIN_URLS: `http://127.0.0.1:${portOf(validator)}` })
})
afterAll(async () => {
  await harness.close()
  server.close()
  validator.close()
})

test('logs the route and the trace of a request, without its path and its credentials', async () => {
  lines.length = 0
  const response = await fetch(`http://127.0.0.1:${portOf(server)}/things/SECRET-KEY?ip=192.0.2.1`, {
    headers: { traceparent: TRACEPARENT, authorization: 'Bearer kwm_secret', 'x-forwarded-for': '192.0.2.2' },
  })
  expect(await response.json()).toMatchObject({ traceId: TRACE, isSampled: true })
  await expect.poll(() => lines).toHaveLength(1)
  expect(lines[0]).toMatchObject({
    requestId: response.headers.get('x-request-id'),
    traceId: TRACE,
    method: 'GET',
    route: '/things/:id',
    status: 200,
  })
  expect(Object.keys(Object(lines[0])).toSorted()).toEqual([
    'durationMs',
    'method',
    'requestId',
    'route',
    'spanId',
    'status',
    'traceId',
  ])
  expect(JSON.stringify(lines)).not.toMatch(/SECRET|192\.0\.2|kwm_/)
})

test('logs requests without a route, and responses that their callers did not receive', async () => {
  lines.length = 0
  const origin = `http://127.0.0.1:${portOf(server)}`
  await (await fetch(`${origin}/no/such/path`)).text()
  await expect(fetch(`${origin}/never`)).rejects.toThrow('fetch failed')
  await expect
    .poll(() => lines)
    .toMatchObject([
      { route: 'none', status: 404 },
      { route: '/never', aborted: true },
    ])
})

test('passes the trace on to the validator that decides a dry run', async () => {
  const vendor = await createVendor(harness)
  const { id } = await vendor.license()
  const headers = { traceparent: TRACEPARENT }
  await vendor.call('POST', 'access-rules/evaluate', { body: { licenseId: id }, headers })
  // The address is tried again, because the validator returns no verdict.
  expect(received).toHaveLength(3)
  for (const one of received) expect(one).toMatch(new RegExp(`^00-${TRACE}-[\\da-f]{16}-01$`))
})
