import { random } from '@keyward/testkit'
import { expect, test } from 'vitest'

import type { Claim } from '../../src/slots/claim-queue.ts'
import { Renewals } from '../../src/slots/renewals.ts'
import { VirtualTime } from '../simulation/virtual-time.ts'

const claim = (machine: number): Claim => ({
  organization: 1,
  licenseId: new Uint8Array(16),
  machineId: Uint8Array.of(machine),
  hostname: null,
  isRecheck: false,
  lease: null,
})

/** Returns renewals, whose attempts succeed if `outcomes` returns true, and the times of all attempts by machine. */
function open(outcomes: (machine: number, attempt: number) => boolean) {
  const time = new VirtualTime(random(1))
  const attempts = new Map<number, number[]>()
  const renewals = new Renewals(({ machineId: [machine = 0] }, done) => {
    const times = [...(attempts.get(machine) ?? []), time.nowMs()]
    attempts.set(machine, times)
    time.after(10, () => done(outcomes(machine, times.length)))
  }, time)
  const run = (untilMs: number) => time.run(untilMs, () => undefined)
  return { renewals, attempts, run }
}

test('collects renewals, and ignores a renewal while an equal one waits or executes', async () => {
  const { renewals, attempts, run } = open(() => true)
  for (const machine of [1, 2, 1]) renewals.add(claim(machine))
  await run(5_000)
  expect([...attempts]).toEqual([
    [1, [500]],
    [2, [500]],
  ])
  renewals.add(claim(1))
  await run(10_000)
  expect(attempts.get(1)).toHaveLength(2)
})

test('retries a failed renewal, and drops it after five attempts', async () => {
  const { renewals, attempts, run } = open((machine, attempt) => machine === 1 && attempt === 3)
  for (const machine of [1, 2]) renewals.add(claim(machine))
  await run(20_000)
  expect([attempts.get(1)?.length, attempts.get(2)?.length]).toEqual([3, 5])
  renewals.add(claim(2))
  await run(21_000)
  expect(attempts.get(2)).toHaveLength(6)
})

test('retries no renewal after the queue is closed', async () => {
  const { renewals, attempts, run } = open(() => false)
  renewals.add(claim(1))
  await run(505)
  renewals.close()
  await run(20_000)
  expect(attempts.get(1)).toHaveLength(1)
})
