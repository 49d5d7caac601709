/** Requires that the live validators implement the fields of a policy (http/validator-features.ts). */

import type { WriteContext } from '../../context.ts'
import { requireValidatorsWith } from '../validators/features.ts'

interface Policy {
  maxMachines: number | null
  expiresAt: Date | null
  durationDays: number | null
  leaseSeconds: number | null
  graceDays: number
}

/** Returns the names of the features that checks of licenses with these policies need. */
function featuresOf(policies: readonly Policy[]): string[] {
  const startsTerm = policies.some(({ expiresAt, durationDays }) => durationDays !== null && expiresAt === null)
  const hasLeases = policies.some(({ maxMachines, leaseSeconds }) => leaseSeconds !== null && maxMachines !== null)
  const hasGrace = policies.some(({ graceDays }) => graceDays > 0)
  return [...(startsTerm ? ['terms'] : []), ...(hasLeases ? ['leases'] : []), ...(hasGrace ? ['grace'] : [])]
}

/** Throws VALIDATORS_OUTDATED when a validator lacks a feature that one of the policies needs. */
export async function requireFeatures(context: WriteContext, policies: readonly Policy[]): Promise<void> {
  await requireValidatorsWith(context, featuresOf(policies))
}
