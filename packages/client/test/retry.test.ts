/** Attempts inside the time budget. No assertion on seconds: the budget is compared with what the service was asked. */

import { describe, expect, test } from 'vitest'

import type { Fault } from './gateway.ts'
import { startWorldWithFile } from './setup.ts'

const unavailable: Fault = { kind: 'answer', status: 503 }

describe.concurrent('attempts', () => {
  test.each<[string, Fault]>([
    ['a dropped connection', { kind: 'drop' }],
    ['a cut answer', { kind: 'cut' }],
    ['a 503', unavailable],
    ['a hanging connection', { kind: 'hang' }],
  ])('%s is tried again, and the answer of the second attempt counts', async (_name, fault) => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 4000 })
    gateway.next = [fault]
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(gateway.requests).toHaveLength(2)
  })

  test('three attempts at most', async () => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9000 })
    gateway.fault = unavailable
    expect(await client.validate()).toMatchObject({ source: 'offline', cause: 'SERVER_ERROR' })
    expect(gateway.requests).toHaveLength(3)
  })

  test('a Retry-After beyond the budget turns to the file at once', async () => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9000 })
    gateway.fault = { ...unavailable, headers: { 'retry-after': '30' } }
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    expect(gateway.requests).toHaveLength(1)
  })

  test('a Retry-After inside the budget is kept', async () => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9000 })
    gateway.next = [{ ...unavailable, headers: { 'retry-after': '1' } }]
    const startMs = performance.now()
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(performance.now() - startMs).toBeGreaterThan(999)
  })

  test('a refusal is not asked for twice', async () => {
    const { client, service, gateway } = await startWorldWithFile()
    service.license.refusedAs = 'SUSPENDED'
    await client.validate()
    expect(gateway.requests).toHaveLength(1)
  })

  test('a service that never answers costs the budget, not more', async () => {
    const { gateway, restart } = await startWorldWithFile()
    gateway.fault = { kind: 'hang' }
    const timeoutMs = 2_000
    const startMs = performance.now()
    const result = await restart({ timeoutMs }).validate()
    // Room for a busy machine, but not for three attempts of a whole budget each.
    expect(performance.now() - startMs).toBeLessThan(3 * timeoutMs)
    expect(result).toMatchObject({ source: 'offline', valid: true, cause: 'TIMEOUT' })
  })

  test.each<[string, typeof fetch]>([
    ['never settles', () => new Promise(() => undefined)],
    ['gives a body that never ends', async () => new Response(new ReadableStream())],
  ])('nor does a fetch of the app that knows no signals and %s', async (_how, fetch) => {
    const { restart } = await startWorldWithFile()
    const result = await restart({ timeoutMs: 300, fetch }).validate()
    expect(result).toMatchObject({ source: 'offline', valid: true, cause: 'TIMEOUT' })
  })
})
