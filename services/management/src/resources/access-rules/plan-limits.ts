/**
 * Enforces the plan limits on access rules (docs/api.md#r7). They apply only when a rule is added, so a downgrade changes no existing rule.
 * They hold under concurrent requests, because every addition first locks the organization's row.
 */

import type { Plan } from '@keyward/contract'

import type { WriteContext } from '../../context.ts'
import { ApiError } from '../../http/problem.ts'
import { countUnexpiredRules, RULE_LIMITS } from '../organizations/store.ts'

/** Locks the organization and returns its plan. Until the transaction ends, no other transaction adds rules or changes the plan. */
export async function lockPlan({ db, organizationId }: WriteContext): Promise<Plan> {
  const { plan } = await db
    .selectFrom('organizations')
    .select('plan')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow()
  return plan
}

/** A rule that is added, or an expired rule that gets a later expiry. */
interface Addition {
  type: string
}

const countries = (rules: readonly Addition[]): number => rules.filter(({ type }) => type === 'COUNTRY').length

/**
 * Throws COUNTRY_RULES_NOT_IN_PLAN or RULE_LIMIT_REACHED. `plan` comes from `lockPlan` in the same transaction, which has deleted the
 * unexpired rules in `removed`. As many additions as deletions are always allowed, so that a set can be kept up to date after a downgrade.
 */
export async function requireWithinPlan(
  { db, organizationId }: WriteContext,
  plan: Plan,
  additions: readonly Addition[],
  removed: readonly Addition[] = [],
): Promise<void> {
  if (plan === 'FREE' && countries(additions) > countries(removed))
    throw new ApiError('COUNTRY_RULES_NOT_IN_PLAN', 'The plan FREE allows no country rules. LITE and STANDARD do.')
  const limit = RULE_LIMITS[plan]
  if (limit === null || additions.length <= removed.length) return
  const rest = await countUnexpiredRules(db, organizationId)
  if (rest + additions.length > limit)
    throw new ApiError(
      'RULE_LIMIT_REACHED',
      `The plan ${plan} allows ${limit} unexpired access rules. The organization has ${rest + removed.length}, and would have ` +
        `${rest + additions.length}. Delete rules or ask the operator for a larger plan.`,
    )
}
