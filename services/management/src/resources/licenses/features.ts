/**
 * Validators of an earlier version do not implement every field of a policy, and would decide checks without it. So such a field is
 * set only while every validator that was live within the last minute implements it.
 */

import { sql } from 'kysely'

import type { WriteContext } from '../../http/context.ts'
import { ApiError } from '../../http/problem.ts'

interface Term {
  expiresAt: Date | null
  durationDays: number | null
}

/** Returns the features that checks of licenses with these policies need, as heartbeats of validators name them. */
function featuresOf(policies: readonly Term[]): string[] {
  return policies.some(({ expiresAt, durationDays }) => durationDays !== null && expiresAt === null) ? ['terms'] : []
}

/** Throws VALIDATORS_OUTDATED when a validator lacks a feature that one of the policies needs. */
export async function requireFeatures({ db }: WriteContext, policies: readonly Term[]): Promise<void> {
  const needed = featuresOf(policies)
  if (needed.length === 0) return
  const { rows } = await sql<{ name: string }>`
    select name from validators where seen_at > now() - interval '1 minute'
      and not coalesce(details -> 'features' ?& ${needed}::text[], false) limit 1`.execute(db)
  const [outdated] = rows
  if (outdated)
    throw new ApiError(
      'VALIDATORS_OUTDATED',
      `The validator ${outdated.name} does not implement ${needed.join(', ')}. Upgrade every validator first.`,
    )
}
