/** Divides a worker's limit of claimed deliveries among the endpoints that have due deliveries. */

import { Tally } from '@keyward/runtime/tally'

import type { DueEndpoint } from './queue.ts'

/**
 * The maximum numbers of claimed deliveries. They exceed the maximum numbers of running attempts, so that an attempt begins as soon as
 * another ends.
 */
const MAX_OF_ENDPOINT = 100
const MAX_OF_ORGANIZATION = 300
const MAX_IN_ALL = 1_200
/** While this many deliveries are claimed, no more are claimed for failing endpoints, so that capacity remains for other endpoints. */
const MAX_FAILING = 600

/** The number of deliveries of an endpoint that may be claimed. */
export interface Allowance {
  endpointId: string
  count: number
}

/** Returns `capacity` divided by `sharers`, rounded down, at least 1. */
function shareOf(capacity: number, sharers: number): number {
  return Math.max(1, Math.floor(capacity / sharers))
}

/**
 * Returns how many deliveries of each endpoint may be claimed now. The endpoints share the limits of the worker and of their organization
 * equally, so that an endpoint with many due deliveries does not displace others. `claimed` contains the numbers of claimed deliveries by
 * endpoint and by organization, and `inAll` is the number of all claimed deliveries.
 */
export function allowancesOf(due: readonly DueEndpoint[], claimed: Tally<string>, inAll: number): Allowance[] {
  const usable = due.flatMap(({ organizationId, enabled, ...rest }) =>
    organizationId === null || enabled !== true ? [] : [{ organizationId, ...rest }],
  )
  const ofOrganization = new Tally<string>()
  for (const { organizationId } of usable) ofOrganization.add(organizationId)
  let left = MAX_IN_ALL - inAll
  let leftToFailing = MAX_FAILING - inAll
  const share = shareOf(left, usable.length)
  const given = new Tally<string>()
  return usable.flatMap(({ endpointId, organizationId, isFailing }) => {
    const leftToOrganization = MAX_OF_ORGANIZATION - claimed.of(organizationId)
    const count = Math.min(
      (isFailing ? 1 : MAX_OF_ENDPOINT) - claimed.of(endpointId),
      share,
      shareOf(leftToOrganization, ofOrganization.of(organizationId)),
      leftToOrganization - given.of(organizationId),
      isFailing ? Math.min(left, leftToFailing) : left,
    )
    if (count <= 0) return []
    given.add(organizationId, count)
    left -= count
    leftToFailing -= count
    return [{ endpointId, count }]
  })
}
