/** Sends generated bodies, values of every type, and concurrent requests, to every endpoint. */

import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { documented } from '../src/openapi/management-api.ts'
import { acceptsIdempotencyKey } from '../src/operations/implement.ts'
import { arbitraryOf } from './support/arbitrary.ts'
import { type EveryEndpoint, hasBody, named, startEveryEndpoint, withoutSecrets } from './support/every-endpoint.ts'
import { outcome } from './support/vendor.ts'

let api: EveryEndpoint

beforeAll(async () => {
  api = await startEveryEndpoint()
})
afterAll(() => api.harness.close())

test.each(named(hasBody))('%s: returns no 5xx for values of any type', async (_, endpoint) => {
  const { path, body = {} } = await api.make(endpoint)
  const errors = endpoint.errors?.map(documented).map(({ code, status }) => `${status} ${code}`) ?? []
  const allowed = [String(endpoint.status), '422 INVALID_REQUEST', ...errors]
  const values = [null, 0, -1.5, true, '', 'x', '\u0000', '\ud800', 'x'.repeat(15_000), [[]], { a: { b: 1 } }]
  for (const field of Object.keys(body))
    for (const value of values)
      expect(allowed).toContain(outcome(await api.send(endpoint, { path, body: { ...body, [field]: value } })))
})

test.each(named(acceptsIdempotencyKey))(
  '%s: runs once for concurrent requests with one idempotency key',
  async (id, endpoint) => {
    const request = await api.make(endpoint)
    const headers = { 'idempotency-key': `at-once-${id}` }
    const responses = await Promise.all(Array.from({ length: 6 }, () => api.send(endpoint, request, { headers })))
    const done = responses.filter((response) => response.status === endpoint.status)
    expect(done.filter((response) => response.headers.get('idempotency-replayed') === null)).toHaveLength(1)
    const rest = responses.filter((response) => response.status !== endpoint.status).map(outcome)
    expect(rest.filter((one) => one !== '409 IDEMPOTENCY_KEY_IN_USE')).toEqual([])
    expect(new Set(done.map((response) => JSON.stringify(withoutSecrets(endpoint, response.body)))).size).toBe(1)
  },
)

test.each(named())('%s: returns documented responses to concurrent requests', async (_, endpoint) => {
  const request = await api.make(endpoint)
  const responses = await Promise.all(Array.from({ length: 6 }, () => api.send(endpoint, request)))
  const statuses = responses.map((response) => response.status)
  expect(statuses.filter((status) => status >= 500)).toEqual([])
  expect(statuses).toContain(endpoint.status)
})

/** The seed of the generated bodies. A failure prints the shortest body that fails, with the seed. */
const SEED = Number(process.env['KEYWARD_SEED'] ?? 20_261_124)
const RUNS = process.env['KEYWARD_LONG'] === '1' ? 1_000 : 25

test.each(named(hasBody))('%s: returns documented responses to generated bodies', async (_, endpoint) => {
  const { path, body: known = {} } = await api.make(endpoint)
  const schema = endpoint.operation.body
  if (schema === undefined) throw new Error('the endpoint has no body')
  const bodies = fc.tuple(arbitraryOf(schema), fc.subarray(Object.keys(known)))
  await fc.assert(
    fc.asyncProperty(bodies, async ([generated, kept]) => {
      // Known ids let a body reach the handler.
      const values = Object.fromEntries(kept.map((name) => [name, known[name]]))
      const isObject = typeof generated === 'object' && generated !== null && !Array.isArray(generated)
      const body = isObject ? { ...generated, ...values } : generated
      const response = await api.send(endpoint, { path }, { raw: JSON.stringify(body) })
      expect(response.status).toBeLessThan(500)
    }),
    { seed: SEED, numRuns: RUNS, interruptAfterTimeLimit: 20_000 },
  )
})
