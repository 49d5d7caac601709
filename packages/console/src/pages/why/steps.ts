/** Explains a decision as the ordered steps of docs/api.md#verdicts, each in one sentence for people. */

import type { AccessRule, evaluation, License, machine } from '@keyward/contract'
import type { z } from 'zod'

import { text } from '../../text.ts'

const t = {
  rules: { LICENSE: 'Rules of this license', PRODUCT: 'Rules of the product', ORGANIZATION: 'Rules for everything' },
  status: {
    title: 'Status',
    active: 'The license is neither suspended nor revoked.',
    allowed: 'The license is suspended, but the exclusion also lets suspended licenses through.',
    SUSPENDED: 'The license is suspended. Reinstate it to let its checks through.',
    REVOKED: 'The license is revoked. A revocation is final.',
  },
  expiry: {
    title: 'Expiry',
    never: 'The license never ends.',
    until: (day: string) => `The license ends on ${day}.`,
    notStarted: (days: number) => `The term of ${days} days starts with the first valid check.`,
    since: (day: string) => `The license ended on ${day}. Renew it to let its checks through.`,
    grace: (day: string) => `The license has expired, and its grace period ends on ${day}.`,
    over: 'The license has ended. Renew it to let its checks through.',
    allowed: 'The license has ended, but the exclusion also lets ended licenses through.',
  },
  slots: {
    title: 'Machine slots',
    noMachineId: 'The license has a machine limit, and the app sent no machine id.',
    full: (max: number) =>
      max === 1
        ? 'The only slot is taken by another machine. Release it, or allow more machines.'
        : `All ${max} slots are taken by other machines. Release one, or allow more machines.`,
    excluded: 'The exclusion skips the machine limit, so the check takes no slot.',
    unlimited: 'The license has no machine limit.',
    unlimitedWithoutId: 'The license has no machine limit, so it needs no machine id.',
    holds: 'This machine holds a slot already.',
    takes: (used: number, max: number) => `${used} of ${max} slots are taken. The machine takes a free one.`,
  },
}
const day = new Intl.DateTimeFormat(undefined, { dateStyle: 'long', timeStyle: 'short' })
const SCOPES = ['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const

export interface Decision {
  evaluation: z.infer<typeof evaluation>
  /** The license with the key, or null if no license has the key. */
  license: License | null
  /** The machines that hold the slots of the license. */
  holders: readonly z.infer<typeof machine>[]
  /** Whether the machine holds a slot of the license. */
  holdsSlot: boolean
  hasMachineId: boolean
}

export interface Step {
  title: string
  /** `passed`: the next step follows. `skipped`: the step is not reached, or a rule makes it irrelevant. */
  result: 'passed' | 'rejects' | 'allows' | 'skipped'
  sentence: string
  /** The enforced rules of the step's scope that match the check. */
  rules: readonly AccessRule[]
  /** The monitored rules of the step's scope that match the check. */
  monitored: readonly AccessRule[]
}

function step(title: string, result: Step['result'], sentence: string): Step {
  return { title, result, sentence, rules: [], monitored: [] }
}

/** The step of one scope. `decided` is true when a more specific scope has decided. */
function scopeStep({ evaluation }: Decision, scope: (typeof SCOPES)[number], decided: boolean): Step {
  const { decidedBy, restricted } = evaluation
  const rules = evaluation.matched.filter((rule) => rule.scope === scope)
  const monitored = evaluation.monitored.filter((rule) => rule.scope === scope)
  const found = (result: Step['result'], sentence: string): Step => {
    return { title: t.rules[scope], result, sentence, rules, monitored }
  }
  if (decided) return found('skipped', 'Not consulted, because a more specific rule decides.')
  if (decidedBy?.scope === scope) {
    if (decidedBy.kind === 'EXCLUSION')
      return found(
        'allows',
        'An exclusion lets the check through. Blacklists, broader rules and the machine limit do not apply.',
      )
    return found('rejects', 'A blacklist rejects the check.')
  }
  if (restricted?.scope === scope) {
    return found(
      'rejects',
      `A restriction allows only certain checks, and this one matches none (${restricted.types.map((type) => text.types[type].toLowerCase()).join(', ')}).`,
    )
  }
  return found(
    'passed',
    rules.length === 0 ? 'No rule matches.' : 'The check satisfies the restriction, so the next rules follow.',
  )
}

function statusStep({ evaluation: { code, decidedBy }, license }: Decision): Step {
  const { title } = t.status
  if (code === 'REVOKED' || code === 'SUSPENDED') return step(title, 'rejects', t.status[code])
  if (license?.status === 'suspended' && decidedBy?.allowSuspendedOrExpired === true)
    return step(title, 'passed', t.status.allowed)
  return step(title, 'passed', t.status.active)
}

function expirySentence({ policy: { expiresAt, durationDays } }: License): string {
  if (expiresAt !== null) return t.expiry.until(day.format(new Date(expiresAt)))
  return durationDays === null ? t.expiry.never : t.expiry.notStarted(durationDays)
}

function expiryStep({ evaluation: { code, decidedBy }, license }: Decision): Step {
  const { title } = t.expiry
  const expiresAt = license?.policy.expiresAt ?? null
  if (code === 'EXPIRED')
    return step(title, 'rejects', expiresAt === null ? t.expiry.over : t.expiry.since(day.format(new Date(expiresAt))))
  if (license?.status === 'grace' && license.graceEndsAt !== null)
    return step(title, 'passed', t.expiry.grace(day.format(new Date(license.graceEndsAt))))
  const isOver = expiresAt !== null && Date.parse(expiresAt) <= Date.now()
  if (isOver && decidedBy?.allowSuspendedOrExpired === true) return step(title, 'passed', t.expiry.allowed)
  return step(title, 'passed', license === null ? t.expiry.never : expirySentence(license))
}

function slotStep({ evaluation: { code, decidedBy }, license, holdsSlot, hasMachineId }: Decision): Step {
  const { title } = t.slots
  const { used, max } = license?.machines ?? { used: 0, max: null }
  if (code === 'FINGERPRINT_REQUIRED') return step(title, 'rejects', t.slots.noMachineId)
  if (code === 'TOO_MANY_MACHINES') return step(title, 'rejects', t.slots.full(max ?? used))
  if (decidedBy?.kind === 'EXCLUSION') return step(title, 'skipped', t.slots.excluded)
  if (max === null) return step(title, 'allows', hasMachineId ? t.slots.unlimited : t.slots.unlimitedWithoutId)
  return step(title, 'allows', holdsSlot ? t.slots.holds : t.slots.takes(used, max))
}

const isReached = (steps: readonly Step[]) => !steps.some(({ result }) => result === 'rejects')

/** Returns the steps in the order in which they decide. All steps after a rejection, and the scopes after an exclusion, are skipped. */
export function stepsOf(decision: Decision, names: { product: string; customer: string }): Step[] {
  const { evaluation, license } = decision
  if (evaluation.code === 'NOT_FOUND')
    return [step('License key', 'rejects', 'No license of this organization has this key.')]
  const steps = [
    step(
      'License key',
      'passed',
      license === null
        ? 'A license has this key.'
        : `The key belongs to a license of ${names.product} for ${names.customer}.`,
    ),
  ]
  for (const scope of SCOPES)
    steps.push(
      scopeStep(
        decision,
        scope,
        steps.some(({ result }) => result === 'rejects' || result === 'allows'),
      ),
    )
  for (const next of [statusStep, expiryStep, slotStep]) {
    const reached = next(decision)
    steps.push(
      isReached(steps)
        ? reached
        : step(reached.title, 'skipped', 'Not consulted, because an earlier step rejects the check.'),
    )
  }
  return steps
}
