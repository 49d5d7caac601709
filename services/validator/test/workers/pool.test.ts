import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { MessageChannel, type MessagePort } from 'node:worker_threads'

import { createIndex } from '@keyward/engine'
import { expect, test } from 'vitest'

import { Control } from '../../src/shared/control.ts'
import { Leases } from '../../src/shared/leases.ts'
import { Throttle } from '../../src/shared/throttle.ts'
import { createRing } from '../../src/usage/ring.ts'
import { WorkerPool } from '../../src/workers/pool.ts'
import { send, until } from '../harness.ts'

const openPublicKeys = (): MessagePort => new MessageChannel().port2

test('replaces a failed worker and keeps its counts', async () => {
  const faults: string[] = []
  const rings = new Set<SharedArrayBuffer>()
  const pool = new WorkerPool(
    { workers: 2, host: '127.0.0.1', port: 0, socketPath: null },
    {
      setup: {
        index: createIndex({ hashKey: randomBytes(16), reserve: 'small' }).shared,
        control: new Control().shared,
        recheckThrottle: new Throttle().shared,
        renewalThrottle: new Throttle().shared,
        leases: new Leases().shared,
        answerKey: generateKeyPairSync('ed25519').privateKey,
        corsOrigins: [],
        resolver: { trustedProxies: [] },
      },
      createRing: () => {
        const ring = createRing()
        rings.add(ring)
        return ring
      },
      releaseRing: (ring) => rings.delete(ring),
      openPublicKeys,
      onRequest: () => undefined,
      onKeyUsed: () => undefined,
      onError: (error, fatal) => void (fatal && faults.push(error.name)),
    },
  )
  const port = await pool.start()
  const unloaded = async (): Promise<void> => {
    const reply = await send(port, '/api/v2/license/validate', { body: {} })
    expect([reply.status, reply.headers['retry-after']]).toEqual([503, '1'])
  }
  for (let i = 0; i < 10; i++) await unloaded()
  const victims = [...pool.workers]
  // An invalid message makes the worker throw outside of any request.
  for (const { thread } of victims) thread.postMessage({ type: 'responses' })
  await until(() => victims.every((victim) => !pool.workers.has(victim)) && pool.size === 2)
  await until(async () => (await send(port, '/', {}).catch(() => null))?.status === 404)
  await unloaded()
  expect(faults).toEqual(['TypeError', 'TypeError'])
  expect(pool.totals().events('UNAVAILABLE')).toBe(11)
  expect(rings.size).toBe(2)
  await pool.stop(1_000)
  expect([pool.size, rings.size]).toEqual([0, 0])
})

test('passes the same number of connections to each worker', async () => {
  const counters: number[] = []
  const pool = new WorkerPool(
    { workers: 3, host: '127.0.0.1', port: 0, socketPath: null },
    {
      setup: {
        index: createIndex({ hashKey: randomBytes(16), reserve: 'small' }).shared,
        control: new Control().shared,
        recheckThrottle: new Throttle().shared,
        renewalThrottle: new Throttle().shared,
        leases: new Leases().shared,
        answerKey: generateKeyPairSync('ed25519').privateKey,
        corsOrigins: [],
        resolver: { trustedProxies: [] },
      },
      createRing,
      releaseRing: () => undefined,
      openPublicKeys,
      onRequest: () => undefined,
      onKeyUsed: () => undefined,
      onError: () => undefined,
    },
  )
  const port = await pool.start()
  await Promise.all(Array.from({ length: 30 }, () => send(port, '/', {})))
  for (const worker of pool.workers) counters.push(worker.counters.events('NOT_FOUND'))
  await pool.stop(1_000)
  expect(counters).toEqual([10, 10, 10])
})
