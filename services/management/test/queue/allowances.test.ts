/** Tests how many deliveries of each endpoint a worker may claim. */

import { Tally } from '@keyward/runtime/tally'
import { expect, test } from 'vitest'

import { allowancesOf } from '../../src/queue/allowances.ts'
import type { DueLane } from '../../src/queue/queue.ts'
import { CLAIMED } from '../../src/webhooks/worker.ts'

/** Returns the numbers of claimed deliveries by endpoint and organization. */
function claimed(...counts: [string, number][]): Tally<string> {
  const tally = new Tally<string>()
  for (const [key, count] of counts) tally.add(key, count)
  return tally
}
const NONE = claimed()

/** Returns endpoints with due deliveries, `perOrganization` of each organization. */
function endpoints(count: number, perOrganization: number, given: Partial<DueLane> = {}): DueLane[] {
  return Array.from({ length: count }, (_, i) => {
    const organizationId = `organization ${Math.floor(i / perOrganization)}`
    return { lane: `endpoint ${i}`, organizationId, enabled: true, isFailing: false, ...given }
  })
}

function countsOf(due: readonly DueLane[], counted: Tally<string>, inAll: number): number[] {
  return allowancesOf(CLAIMED, due, { lanes: counted, organizations: counted }, inAll).map(({ count }) => count)
}

test('one endpoint is allowed at most 100 deliveries, including the claimed ones', () => {
  expect(countsOf(endpoints(1, 1), NONE, 0)).toEqual([100])
  expect(countsOf(endpoints(1, 1), claimed(['endpoint 0', 70]), 70)).toEqual([30])
  expect(countsOf(endpoints(1, 1), claimed(['endpoint 0', 100]), 100)).toEqual([])
})

test('the endpoints of an organization share its limit of 300', () => {
  expect(countsOf(endpoints(20, 20), NONE, 0)).toEqual(Array.from({ length: 20 }, () => 15))
  expect(countsOf(endpoints(20, 20), claimed(['organization 0', 290]), 290)).toEqual(
    Array.from({ length: 10 }, () => 1),
  )
})

test('all endpoints share the limit of 1,200 equally', () => {
  expect(countsOf(endpoints(50, 5), NONE, 0)).toEqual(Array.from({ length: 50 }, () => 24))
  expect(countsOf(endpoints(1_000, 5), NONE, 0)).toEqual(Array.from({ length: 1_000 }, () => 1))
  expect(countsOf(endpoints(50, 5), NONE, 1_190)).toHaveLength(10)
  expect(countsOf(endpoints(50, 5), NONE, 1_200)).toEqual([])
})

test('failing endpoints are allowed one delivery each, while fewer than 600 are claimed', () => {
  const failing = endpoints(50, 5, { isFailing: true })
  expect(countsOf(failing, NONE, 0)).toEqual(Array.from({ length: 50 }, () => 1))
  expect(countsOf(failing, NONE, 590)).toHaveLength(10)
  expect(countsOf(failing, NONE, 600)).toEqual([])
})

test('disabled and deleted endpoints are allowed no deliveries', () => {
  expect(countsOf(endpoints(2, 1, { enabled: false }), NONE, 0)).toEqual([])
  expect(countsOf(endpoints(2, 1, { organizationId: null, enabled: null }), NONE, 0)).toEqual([])
})
