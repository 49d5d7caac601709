import { expect, test } from 'vitest'

import { keepRunning, type Running } from '../start/supervisor.ts'

const PAUSES = { firstMs: 1, longestMs: 4, calmMs: 60_000 }

/** A part that can be killed from the test. */
function part() {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  return { ended, end, stop: () => Promise.resolve(end()) } satisfies Running & { end: () => void }
}

test('a part that ends is started again, until the stop', async () => {
  const parts: ReturnType<typeof part>[] = []
  const said: string[] = []
  const begin = () => {
    const next = part()
    parts.push(next)
    return Promise.resolve(next)
  }
  const kept = await keepRunning('It', begin, (line) => said.push(line), PAUSES)
  expect(kept.current()).toBe(parts[0])
  parts[0]?.end()
  await expect.poll(() => parts.length).toBe(2)
  await expect.poll(() => kept.current()).toBe(parts[1])
  await kept.stop()
  await parts[1]?.ended
  expect(parts).toHaveLength(2)
  expect(said).toEqual(['It ended unexpectedly; it is started again.', 'It runs again.'])
})

test('a restart that fails is reported and tried again', async () => {
  let starts = 0
  const said: string[] = []
  let first: ReturnType<typeof part> | undefined
  const begin = () => {
    starts++
    if (starts === 2 || starts === 3) return Promise.reject(new Error('no room'))
    const next = part()
    first ??= next
    return Promise.resolve(next)
  }
  const kept = await keepRunning('It', begin, (line) => said.push(line), PAUSES)
  first?.end()
  await expect.poll(() => starts).toBe(4)
  await kept.stop()
  expect(said.filter((line) => line === 'It could not be started again: no room')).toHaveLength(2)
})

test('a first start that fails rejects', async () => {
  const begin = () => Promise.reject(new Error('no room'))
  await expect(keepRunning('It', begin, () => undefined, PAUSES)).rejects.toThrow('no room')
})

test('a stop while a restart is under way stops what that brings up', async () => {
  const late = Promise.withResolvers<ReturnType<typeof part>>()
  const [first, second] = [part(), part()]
  let starts = 0
  const begin = () => (starts++ === 0 ? Promise.resolve(first) : late.promise)
  const kept = await keepRunning('It', begin, () => undefined, PAUSES)
  first.end()
  await expect.poll(() => starts).toBe(2)
  const stopped = kept.stop()
  late.resolve(second)
  await stopped
  await second.ended
  expect(starts).toBe(2)
})
