import { expect, test } from 'vitest'

import { CatchUp } from '../../src/feed/catch-up.ts'

/** Returns a clock whose timers fire only when the test calls `fire`. */
function manualClock() {
  const calls = new Set<() => void>()
  return {
    nowMs: () => 0,
    after: (_delayMs: number, call: () => void) => {
      calls.add(call)
      return () => void calls.delete(call)
    },
    fire: () => calls.forEach((call) => call()),
    timers: () => calls.size,
  }
}

test('resolves at once when the applied snapshot covers the wanted one', async () => {
  let reads = 0
  const catchUp = new CatchUp(() => reads++)
  catchUp.caughtUp('10:20:11,12')
  await expect(catchUp.until('10:15:11,12,13', 'vendor', 1_000)).resolves.toBe(true)
  expect(reads).toBe(0)
})

test('reads again after a read that began too early, once for all callers', async () => {
  let reads = 0
  const clock = manualClock()
  const catchUp = new CatchUp(() => reads++, clock)
  const first = catchUp.until('20:20:', 'vendor', 1_000)
  const second = catchUp.until('19:21:20', 'vendor', 1_000)
  expect(reads).toBe(2) // the follower combines them into one read
  catchUp.caughtUp('19:19:')
  expect(reads).toBe(3)
  catchUp.caughtUp('20:20:')
  await expect(first).resolves.toBe(true)
  await expect(second).resolves.toBe(true)
  expect(clock.timers()).toBe(0)
})

test('resolves to false after the time limit, with at most two reads', async () => {
  let reads = 0
  const clock = manualClock()
  const catchUp = new CatchUp(() => reads++, clock)
  const waiting = catchUp.until('900:900:', 'vendor', 1_000)
  for (let i = 0; i < 10; i++) catchUp.caughtUp('20:20:')
  expect(reads).toBe(2)
  clock.fire()
  await expect(waiting).resolves.toBe(false)
})

test("waits only for the large changes of the caller's organization", async () => {
  const catchUp = new CatchUp(() => undefined)
  catchUp.caughtUp('10:10:')
  const own = catchUp.until('20:20:', 'large', 10_000)
  await expect(catchUp.until('20:20:', 'vendor', 0)).resolves.toBe(false)
  catchUp.caughtUpExcept('20:20:', ['large'])
  await expect(catchUp.until('20:20:', 'vendor', 0)).resolves.toBe(true)
  await expect(catchUp.until('20:20:', 'large', 0)).resolves.toBe(false)
  catchUp.caughtUp('20:20:')
  await expect(own).resolves.toBe(true)
})
