/** Divides a worker's limit of claimed deliveries among the endpoints that have due deliveries. */

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

export function countOf(counts: ReadonlyMap<string, number>, key: string): number {
  return counts.get(key) ?? 0
}

export function add(counts: Map<string, number>, key: string, change: number): void {
  const count = countOf(counts, key) + change
  if (count === 0) counts.delete(key)
  else counts.set(key, count)
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
export function allowancesOf(
  due: readonly DueEndpoint[],
  claimed: ReadonlyMap<string, number>,
  inAll: number,
): Allowance[] {
  const usable = due.flatMap(({ organizationId, enabled, ...rest }) =>
    organizationId === null || enabled !== true ? [] : [{ organizationId, ...rest }],
  )
  const ofOrganization = new Map<string, number>()
  for (const { organizationId } of usable) add(ofOrganization, organizationId, 1)
  let left = MAX_IN_ALL - inAll
  let leftToFailing = MAX_FAILING - inAll
  const share = shareOf(left, usable.length)
  const given = new Map<string, number>()
  return usable.flatMap(({ endpointId, organizationId, isFailing }) => {
    const leftToOrganization = MAX_OF_ORGANIZATION - countOf(claimed, organizationId)
    const count = Math.min(
      (isFailing ? 1 : MAX_OF_ENDPOINT) - countOf(claimed, endpointId),
      share,
      shareOf(leftToOrganization, countOf(ofOrganization, organizationId)),
      leftToOrganization - countOf(given, organizationId),
      isFailing ? Math.min(left, leftToFailing) : left,
    )
    if (count <= 0) return []
    add(given, organizationId, count)
    left -= count
    leftToFailing -= count
    return [{ endpointId, count }]
  })
}
