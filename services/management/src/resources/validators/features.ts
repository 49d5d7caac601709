/**
 * Checks that the live validators implement a feature. A validator lists its features in its heartbeat. A validator of an earlier version
 * would ignore a newer feature in its verdicts. Management therefore accepts the use of a feature only while every validator that was live
 * within the last minute implements it.
 */

import { sql } from 'kysely'

import type { WriteContext } from '../../context.ts'
import { ApiError } from '../../http/problem.ts'

/** Throws VALIDATORS_OUTDATED when a validator lacks one of the features. */
export async function requireValidatorsWith({ db }: WriteContext, needed: readonly string[]): Promise<void> {
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
