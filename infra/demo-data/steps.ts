/** The changes of the last month in the demo data: rules, suspensions, renewals and acknowledged alerts.
 * The steps send requests to the management API with the credentials of members. */

import { z } from 'zod'

import { type Api, withId } from './api.ts'
import { ADMINISTRATOR, SALES, SUPPORT } from './catalog.ts'
import { ARRIVALS_DAYS, DAY_MS, type Fate, type Plan } from './plan.ts'
import { type Known, planRules, planSets } from './rules.ts'
import { BLOCKED_DAYS, REVOKED_DAYS, SUSPENDED_DAYS } from './usage.ts'

export interface Step {
  /** The age in days of the change that the step makes. */
  readonly ageDays: number
  readonly run: () => Promise<void>
}

const anything = z.unknown()
const listed = z.object({ data: z.array(anything) })

/** Returns the changes as steps. `known` is filled before the first change runs. `as` returns the API with the credential of a member. */
export function changes(plan: Plan, known: Known, as: (email: string) => Api): Step[] {
  const license = (i: number, action = '') => `/licenses/${known.licenses[i]!}${action}`
  /** Imports the rules that do not exist. A rule of an earlier run ends sooner, so an import alone would add the rule again. */
  const importRules = async (email: string, group: 'first' | 'watched' | 'support') => {
    const rules = []
    for (const rule of planRules(plan, known)[group]) {
      const query = new URLSearchParams({ kind: rule.kind, type: rule.type, value: rule.value, scope: rule.scope, limit: '1' })
      const { data } = await as(email).send('GET', `/access-rules?${query.toString()}`, listed)
      if (data.length === 0) rules.push(rule)
    }
    if (rules.length > 0) await as(email).send('POST', '/access-rules/import', anything, { rules })
  }
  const replaceSet = async (email: string, name: string) =>
    void (await as(email).send('PUT', `/access-rules/sets/${encodeURIComponent(name)}`, anything, {
      rules: planSets()[name],
    }))
  const withFate = (fate: Fate, action: 'suspend' | 'revoke', ageDays: number): Step[] =>
    [ageDays, 0.6].map((age) => ({
      ageDays: age,
      run: async () => {
        for (const [i, { arrival, fate: own }] of plan.licenses.entries()) {
          const isOld = ARRIVALS_DAYS[arrival]! > ageDays
          if (own === fate && isOld === (age === ageDays)) await as(SUPPORT).send('POST', license(i, `/${action}`), anything)
        }
      },
    }))
  return [
    { ageDays: 28.6, run: () => importRules(ADMINISTRATOR, 'first') },
    { ageDays: 26.3, run: () => replaceSet(ADMINISTRATOR, 'anonymous proxies') },
    { ageDays: 25.2, run: () => replaceSet(SUPPORT, 'shared keys') },
    { ageDays: BLOCKED_DAYS, run: () => importRules(ADMINISTRATOR, 'watched') },
    ...withFate('suspended', 'suspend', SUSPENDED_DAYS),
    ...withFate('revoked', 'revoke', REVOKED_DAYS),
    { ageDays: 12.4, run: () => renew(plan, (i, body) => as(SALES).send('POST', license(i, '/renew'), anything, body)) },
    { ageDays: 7.1, run: async () => void (await as(SALES).send('PATCH', license(4), withId, { policy: { maxMachines: 8 } })) },
    { ageDays: 5.3, run: () => importRules(SUPPORT, 'support') },
    { ageDays: 2.1, run: () => releaseSlot(as(SUPPORT), license(12, '/machines')) },
    { ageDays: 1.7, run: () => acknowledge(as(SUPPORT)) },
  ]
} // prettier-ignore

/** Renews up to five yearly licenses by 60 days. */
async function renew(
  plan: Plan,
  send: (license: number, body: { expiresAt: string }) => Promise<unknown>,
): Promise<void> {
  const yearly = plan.licenses.flatMap(({ fate, endsMs }, i) =>
    i % 20 === 2 && fate === 'active' && endsMs !== null ? [{ i, endsMs }] : [],
  )
  for (const { i, endsMs } of yearly.slice(0, 5))
    await send(i, { expiresAt: new Date(endsMs + 60 * DAY_MS).toISOString() })
}

async function releaseSlot(api: Api, path: string): Promise<void> {
  const [machine] = await api.all(path, withId)
  if (machine) await api.delete(`${path}/${machine.id}`)
}

/** Acknowledges the alerts that are open. Later checks open new alerts. */
async function acknowledge(api: Api): Promise<void> {
  const alerts = await api.all('/alerts', z.object({ id: z.string(), acknowledgedAt: z.string().nullable() }))
  for (const { id, acknowledgedAt } of alerts)
    if (acknowledgedAt === null) await api.send('POST', `/alerts/${id}/acknowledge`, anything)
}
