import { afterAll, beforeAll, expect, test } from 'vitest'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const ORIGIN = 'https://app.example.com'
let world: World
let validator: RunningValidator

beforeAll(async () => {
  world = await createWorld()
  validator = await startLoaded(world.database.url, { corsOrigins: [ORIGIN] })
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const call = (method: string, origin: string): Promise<Reply> =>
  send(validator.port, V2, {
    method,
    headers: { origin },
    ...(method === 'POST' ? { body: {}, secret: world.secret } : {}),
  })

test('responds to preflight requests of the configured origins', async () => {
  const reply = await call('OPTIONS', ORIGIN)
  expect([reply.status, reply.text]).toEqual([204, ''])
  expect(reply.headers).toMatchObject({
    'access-control-allow-origin': ORIGIN,
    'access-control-allow-methods': 'POST',
    'access-control-allow-headers': 'authorization, content-type',
    vary: 'origin',
  })
  expect(
    (await call('OPTIONS', 'https://elsewhere.example.com')).headers['access-control-allow-origin'],
  ).toBeUndefined()
})

test('allows only configured origins, in every response including errors', async () => {
  const invalid = await call('POST', ORIGIN)
  expect([invalid.status, invalid.headers['access-control-allow-origin']]).toEqual([422, ORIGIN])
  expect(invalid.headers['access-control-expose-headers']).toBe('date, retry-after, keyward-signature')
  expect((await call('POST', 'https://elsewhere.example.com')).headers['access-control-allow-origin']).toBeUndefined()
  const other = await call('PUT', ORIGIN)
  expect([other.status, other.headers['allow']]).toEqual([405, 'POST, OPTIONS'])
})
