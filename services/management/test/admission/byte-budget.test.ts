import { once } from 'node:events'
import { createServer } from 'node:http'

import { expect, test } from 'vitest'

import { ByteBudget } from '../../src/admission/byte-budget.ts'
import { readBody } from '../../src/http/body.ts'
import { ApiError } from '../../src/http/problem.ts'

test('counts the bytes that bodies have sent, and rejects those beyond the budget until a body is released', () => {
  let rejected = 0
  const budget = new ByteBudget(100, 'imports', () => rejected++)
  const slow = Array.from({ length: 50 }, () => budget.hold())
  for (const body of slow) body.take(1)
  const large = budget.hold()
  large.take(40)
  large.take(10)
  expect(() => budget.hold().take(1)).toThrow('Too many imports are being received at once.')
  expect(rejected).toBe(1)
  large.release()
  large.release()
  const next = budget.hold()
  next.take(50)
  expect(() => next.take(1)).toThrow('Too many imports')
  for (const body of slow) body.release()
  next.take(50)
})

test('rejects a body beyond the budget while it is being received, and accepts the next one', async () => {
  const budget = new ByteBudget(1_000, 'imports', () => undefined)
  const server = createServer((request, response) => {
    const { take, release } = budget.hold()
    readBody(request, { maxBytes: 10_000, isHashed: false, take })
      .then(
        () => response.end('read'),
        (error: unknown) => response.end(error instanceof ApiError ? error.code : String(error)),
      )
      .finally(release)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const address = server.address()
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`
  const headers = { 'content-type': 'application/json', connection: 'close' }
  const send = async (bytes: number) =>
    (await fetch(url, { method: 'POST', headers, body: `"${'x'.repeat(bytes - 2)}"` })).text()
  expect([await send(1_000), await send(1_001), await send(1_000)]).toEqual(['read', 'UNAVAILABLE', 'read'])
  server.close()
})
