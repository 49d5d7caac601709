/** Divides a worker's limit of claimed rows among the lanes that have due rows. */

import { Tally } from '@keyward/runtime/tally'

import type { Allowance, DueLane } from './queue.ts'

/**
 * The maximum numbers of claimed rows. For webhooks, they exceed the maximum numbers of running attempts, so that an attempt begins as soon
 * as another ends. No claimed mail waits.
 */
export interface ClaimLimits {
  lane: number
  organization: number
  inAll: number
  /** While this many rows are claimed, no more are claimed for failing lanes, so that capacity remains for other lanes. */
  failing: number
}

/** Returns `capacity` divided by `sharers`, rounded down, at least 1. */
function shareOf(capacity: number, sharers: number): number {
  return Math.max(1, Math.floor(capacity / sharers))
}

/**
 * Returns how many rows of each lane may be claimed now. The lanes share the limits of the worker and of their organization equally, so that
 * a lane with many due rows does not displace others. `claimed` contains the numbers of claimed rows by lane and by organization, and
 * `inAll` is the number of all claimed rows.
 */
export function allowancesOf(
  limits: ClaimLimits,
  due: readonly DueLane[],
  claimed: { lanes: Tally<string>; organizations: Tally<string> },
  inAll: number,
): Allowance[] {
  const usable = due.flatMap(({ organizationId, enabled, ...rest }) =>
    organizationId === null || enabled !== true ? [] : [{ organizationId, ...rest }],
  )
  const ofOrganization = new Tally<string>()
  for (const { organizationId } of usable) ofOrganization.add(organizationId)
  let left = limits.inAll - inAll
  let leftToFailing = limits.failing - inAll
  const share = shareOf(left, usable.length)
  const given = new Tally<string>()
  return usable.flatMap(({ lane, organizationId, isFailing, most = Infinity }) => {
    const leftToOrganization = limits.organization - claimed.organizations.of(organizationId)
    const count = Math.min(
      (isFailing ? 1 : limits.lane) - claimed.lanes.of(lane),
      most,
      share,
      shareOf(leftToOrganization, ofOrganization.of(organizationId)),
      leftToOrganization - given.of(organizationId),
      isFailing ? Math.min(left, leftToFailing) : left,
    )
    if (count <= 0) return []
    given.add(organizationId, count)
    left -= count
    leftToFailing -= count
    return [{ lane, count }]
  })
}
