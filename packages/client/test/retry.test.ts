import { describe, expect, test } from 'vitest'

import type { Fault } from '../contract-suite/service/gateway.ts'
import { startWorldWithFile } from './setup.ts'

const unavailable: Fault = { kind: 'respond', status: 503 }

describe.concurrent('a call', () => {
  test.each<[string, Fault]>([
    ['a dropped connection', { kind: 'drop' }],
    ['a truncated response', { kind: 'cut' }],
    ['a 503', unavailable],
    ['a hanging connection', { kind: 'hang' }],
  ])('returns the response of the second attempt after %s', async (_name, fault) => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 4000 })
    gateway.next = [fault]
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(gateway.requests).toHaveLength(2)
  })

  test('a call makes at most three attempts', async () => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9000 })
    gateway.fault = unavailable
    expect(await client.validate()).toMatchObject({ source: 'offline', cause: 'SERVER_ERROR' })
    expect(gateway.requests).toHaveLength(3)
  })

  test('uses the file without a retry when Retry-After exceeds the budget', async () => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9000 })
    gateway.fault = { ...unavailable, headers: { 'retry-after': '30' } }
    expect(await client.validate()).toMatchObject({ source: 'offline', valid: true })
    expect(gateway.requests).toHaveLength(1)
  })

  test('waits for a Retry-After within the budget', async () => {
    const { client, gateway } = await startWorldWithFile({ timeoutMs: 9000 })
    gateway.next = [{ ...unavailable, headers: { 'retry-after': '1' } }]
    const startMs = performance.now()
    expect(await client.validate()).toMatchObject({ source: 'online', valid: true })
    expect(performance.now() - startMs).toBeGreaterThan(999)
  })

  test('does not retry a rejection', async () => {
    const { client, service, gateway } = await startWorldWithFile()
    service.license.rejectedAs = 'SUSPENDED'
    await client.validate()
    expect(gateway.requests).toHaveLength(1)
  })

  test('ends within the budget when the service never responds', async () => {
    const { gateway, restart } = await startWorldWithFile()
    gateway.fault = { kind: 'hang' }
    const timeoutMs = 2_000
    const startMs = performance.now()
    const result = await restart({ timeoutMs }).validate()
    // The limit suffices on a busy machine. Three attempts would exceed it if each used the whole budget.
    expect(performance.now() - startMs).toBeLessThan(3 * timeoutMs)
    expect(result).toMatchObject({ source: 'offline', valid: true, cause: 'TIMEOUT' })
  })

  test.each<[string, typeof fetch]>([
    ['never settles', () => new Promise(() => undefined)],
    ['returns a body that never ends', async () => new Response(new ReadableStream())],
  ])('ends within the budget when a fetch of the app ignores signals and %s', async (_how, fetch) => {
    const { restart } = await startWorldWithFile()
    const result = await restart({ timeoutMs: 300, fetch }).validate()
    expect(result).toMatchObject({ source: 'offline', valid: true, cause: 'TIMEOUT' })
  })
})
