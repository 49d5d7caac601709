import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { FairQueue } from '../src/fair-queue.ts'
import { repeat, throttledLog } from '../src/repeat.ts'
import { Tally } from '../src/tally.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => vi.useRealTimers())

test('counts by key and in total', () => {
  const tally = new Tally<string>()
  tally.add('a')
  tally.add('a', 2)
  tally.add('b')
  tally.add('b', -1)
  expect([tally.of('a'), tally.of('b'), tally.of('c'), tally.total]).toEqual([3, 0, 0, 3])
  tally.clear()
  expect([tally.of('a'), tally.total]).toEqual([0, 0])
})

test('takes items of owners in turns of eight, within the share of each owner', () => {
  const queue = new FairQueue<string, string>()
  for (let i = 0; i < 100; i++) queue.add('many', `many ${i}`)
  queue.add('few', 'few 0')
  const first = queue.take(10)
  expect(first).toEqual([...Array.from({ length: 8 }, (_, i) => `many ${i}`), 'few 0', 'many 8'])
  expect(queue.take(50, () => 3)).toEqual(['many 9', 'many 10', 'many 11'])
  expect(queue.size).toBe(88)
})

test('drops dead items, and skips items that are not ready without losing their place', () => {
  const [dead, late] = [new Set(['b']), new Set(['a', 'd'])]
  const queue = new FairQueue<string, string>({
    isDead: (item) => dead.has(item),
    isReady: (item) => !late.has(item),
  })
  for (const item of ['a', 'b', 'c', 'd', 'e']) queue.add('owner', item)
  expect(queue.take(1)).toEqual(['c'])
  late.clear()
  expect(queue.take(5)).toEqual(['a', 'd', 'e'])
  expect(queue.size).toBe(0)
})

test('repeats a task after errors, with the pause that a run returns, until it is stopped', async () => {
  const errors: unknown[] = []
  let runs = 0
  const third = Promise.withResolvers<void>()
  const end = Promise.withResolvers<void>()
  const stop = repeat(
    async () => {
      runs++
      if (runs === 1) throw new Error('first')
      if (runs === 2) return 0
      third.resolve()
      await end.promise
      return 0
    },
    { everyMs: 1, onError: (error) => errors.push(error) },
  )
  await third.promise
  let hasStopped = false
  const stopped = stop().then(() => (hasStopped = true))
  await Promise.resolve()
  expect(hasStopped).toBe(false) // the run in progress has not ended
  end.resolve()
  await stopped
  expect([runs, errors]).toEqual([3, [new Error('first')]])
})

test('logs the first of many entries, and then the number of suppressed ones', () => {
  const lines: unknown[] = []
  const write = (fields: unknown, message?: string): void => void lines.push([fields, message])
  const log = throttledLog({ warn: write, error: () => undefined }, 'it failed', { intervalMs: 100 })
  for (let n = 0; n < 3; n++) log({ n })
  vi.advanceTimersByTime(100)
  log({ n: 3 })
  expect(lines).toEqual([
    [{ n: 0 }, 'it failed'],
    [{ n: 3, suppressed: 2 }, 'it failed'],
  ])
})
