import { setTimeout as sleep } from 'node:timers/promises'

import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import { Deadlines, type Expiring, NOT_LISTED } from '../../src/http/deadlines.ts'

test('counts open requests, and expires each request that stays open exactly once, the oldest first', async () => {
  const { int } = random(11)
  const expired: number[] = []
  const deadlines = new Deadlines(5_000)
  const open: { item: Expiring; number: number }[] = []
  for (let number = 0; number < 2_000; number++) {
    const item: Expiring = { deadlineSlot: NOT_LISTED, expire: () => void expired.push(number) }
    deadlines.add(item)
    open.push({ item, number })
    // Usually the newest request ends at once. Sometimes another request ends instead.
    if (int(10) > 0) {
      const at = int(4) === 0 ? int(open.length) : open.length - 1
      const [left] = open.splice(at, 1)
      if (left) deadlines.remove(left.item)
    }
    expect(deadlines.count).toBe(open.length)
    if (number % 500 === 0) await sleep(20)
  }
  expect(expired).toEqual([])
  const staying = open.map(({ number }) => number)
  expect(staying.length).toBeGreaterThan(5)
  await expect.poll(() => expired.length, { timeout: 15_000 }).toBe(staying.length)
  expect(expired).toEqual(staying)
  expect(deadlines.count).toBe(0)
  for (const { item } of open) deadlines.remove(item)
  expect(deadlines.count).toBe(0)
  deadlines.stop()
})
