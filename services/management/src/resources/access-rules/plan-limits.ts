/**
 * Plan limits on access rules (API document, "Limits"): they apply only to adding, and hold under concurrent requests because every
 * adding first locks the organization's row. A downgrade therefore changes nothing about rules that exist.
 */
import type { Plan } from '@keyward/contract'

import type { Change } from '../../audit/writer.ts'
import { Refusal } from '../../http/problem.ts'
import { countUnexpiredRules, ruleLimits } from '../organizations/store.ts'

/** Until the transaction ends, nobody else adds rules to the organization or changes its plan. */
export async function lockPlan({ db, organizationId }: Change): Promise<Plan> {
  const { plan } = await db
    .selectFrom('organizations')
    .select('plan')
    .where('id', '=', organizationId)
    .forNoKeyUpdate()
    .executeTakeFirstOrThrow()
  return plan
}

/** What is about to become unexpired that was not. */
export interface Addition {
  type: string
}

/** Refuses with COUNTRY_RULES_NOT_IN_PLAN or RULE_LIMIT_REACHED. `plan` comes from `lockPlan` in the same transaction. */
export async function refuseBeyondPlan(
  { db, organizationId }: Change,
  plan: Plan,
  additions: readonly Addition[],
): Promise<void> {
  if (plan === 'FREE' && additions.some((rule) => rule.type === 'COUNTRY'))
    throw new Refusal('COUNTRY_RULES_NOT_IN_PLAN')
  const limit = ruleLimits[plan]
  if (limit === null || additions.length === 0) return
  const used = await countUnexpiredRules(db, organizationId)
  if (used + additions.length > limit)
    throw new Refusal(
      'RULE_LIMIT_REACHED',
      `The plan ${plan} allows ${limit} unexpired access rules; there are ${used}.`,
    )
}
