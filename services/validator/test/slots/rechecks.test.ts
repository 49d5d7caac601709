import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import type { Claim } from '../../src/slots/claim-queue.ts'
import { SlotService } from '../../src/slots/slot-service.ts'

let executed: Claim[]
/** The machines that the index holds because of a result. */
let applied: string[]
/** The time that a statement takes, and its outcome. */
let tookMs: number
let outcome: 'limit' | 'granted'
let service: SlotService

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  executed = []
  applied = []
  tookMs = 0
  outcome = 'limit'
  service = new SlotService(
    {
      execute: async (claims) => {
        executed.push(...claims)
        if (tookMs > 0) await new Promise((resolve) => setTimeout(resolve, tookMs))
        return claims.map(() => ({
          outcome,
          used: 1,
          max: 1,
          xid: '7',
          expiresAtMs: Infinity,
          leaseSeconds: null,
        }))
      },
      isHopeless: () => true,
      release: () => Promise.resolve([]),
    },
    { applyOwn: ({ machineId }) => applied.push(String(machineId)), applySeen: () => undefined },
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

test('applies the result of a claim that arrives after the claim has ended undecided', async () => {
  tookMs = 3_000
  outcome = 'granted'
  const decided: boolean[] = []
  const claim = {
    organization: 1,
    licenseId: Buffer.alloc(16),
    machineId: Buffer.from('late'),
    hostname: null,
    isRecheck: false,
    lease: null,
  }
  service.claim(claim, (decision) => decided.push(decision.isDecided))
  await vi.advanceTimersByTimeAsync(2_000)
  expect({ decided, applied }).toEqual({ decided: [false], applied: [] })
  await vi.advanceTimersByTimeAsync(2_000)
  expect({ decided, applied }).toEqual({ decided: [false], applied: ['late'] })
})
