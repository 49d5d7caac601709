import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { Claim } from '../../src/slots/claim-queue.ts'
import { SlotService } from '../../src/slots/slot-service.ts'

let executed: Claim[]
let service: SlotService

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  executed = []
  service = new SlotService(
    {
      execute: (claims) => {
        executed.push(...claims)
        return Promise.resolve(
          claims.map(() => ({
            outcome: 'limit',
            used: 1,
            max: 1,
            xid: '7',
            expiresAtMs: Infinity,
            leaseSeconds: null,
          })),
        )
      },
      isHopeless: () => true,
      release: () => Promise.resolve([]),
    },
    { applyOwn: () => undefined, applySeen: () => undefined },
    { onError: () => undefined, leases: { set: () => undefined } },
  )
})
afterEach(() => {
  service.close()
  vi.useRealTimers()
})

function recheck(organization: number, license: number): boolean[] {
  const decided: boolean[] = []
  const licenseId = Buffer.from(`${organization} ${license}`.padEnd(16))
  const claim = { organization, licenseId, machineId: Buffer.from('m'), hostname: null, isRecheck: true, lease: null }
  service.claim(claim, (decision) => decided.push(decision.isDecided))
  return decided
}

test('rechecks a limited number of full licenses of each organization in a window', async () => {
  const hostile = Array.from({ length: 1_000 }, (_, i) => recheck(1, i))
  const quiet = recheck(2, 0)
  // The other rechecks end undecided at once, so their checks are decided from memory.
  expect(hostile.filter(([isDecided]) => isDecided === false)).toHaveLength(1_000 - 32)
  await vi.advanceTimersByTimeAsync(10)
  expect(quiet).toEqual([true])
  expect(executed).toHaveLength(33)
  for (let i = 0; i < 1_000; i++) {
    recheck(1, i % 50)
    await vi.advanceTimersByTimeAsync(1)
  }
  expect(executed.length).toBeLessThanOrEqual(33 + 6 * 32)
})
