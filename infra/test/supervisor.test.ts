import { expect, test } from 'vitest'

import { supervise, type Running } from '../start/supervisor.ts'

const BACKOFF = { firstMs: 1, maxMs: 4, resetAfterMs: 60_000 }

/** Returns a process that the test can end. */
function part() {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  return { ended, end, stop: () => Promise.resolve(end()) } satisfies Running & { end: () => void }
}

test('restarts a process that ends, until the supervisor is stopped', async () => {
  const parts: ReturnType<typeof part>[] = []
  const reports: string[] = []
  const start = () => {
    const next = part()
    parts.push(next)
    return Promise.resolve(next)
  }
  const supervised = await supervise('It', start, (line) => reports.push(line), BACKOFF)
  expect(supervised.current()).toBe(parts[0])
  parts[0]?.end()
  await expect.poll(() => parts.length).toBe(2)
  await expect.poll(() => supervised.current()).toBe(parts[1])
  await supervised.stop()
  await parts[1]?.ended
  expect(parts).toHaveLength(2)
  expect(reports).toEqual(['It ended unexpectedly; restarting it.', 'It has restarted.'])
})

test('reports and retries a restart that fails', async () => {
  let starts = 0
  const reports: string[] = []
  let first: ReturnType<typeof part> | undefined
  const start = () => {
    starts++
    if (starts === 2 || starts === 3) return Promise.reject(new Error('no memory'))
    const next = part()
    first ??= next
    return Promise.resolve(next)
  }
  const supervised = await supervise('It', start, (line) => reports.push(line), BACKOFF)
  first?.end()
  await expect.poll(() => starts).toBe(4)
  await supervised.stop()
  expect(reports.filter((line) => line === 'It could not be restarted: no memory')).toHaveLength(2)
})

test('the supervisor rejects when the first start fails', async () => {
  const start = () => Promise.reject(new Error('no memory'))
  await expect(supervise('It', start, () => undefined, BACKOFF)).rejects.toThrow('no memory')
})

test('stops a process that was being started when stop was called', async () => {
  const late = Promise.withResolvers<ReturnType<typeof part>>()
  const [first, second] = [part(), part()]
  let starts = 0
  const start = () => (starts++ === 0 ? Promise.resolve(first) : late.promise)
  const supervised = await supervise('It', start, () => undefined, BACKOFF)
  first.end()
  await expect.poll(() => starts).toBe(2)
  const stopped = supervised.stop()
  late.resolve(second)
  await stopped
  await second.ended
  expect(starts).toBe(2)
})
