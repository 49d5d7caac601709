/**
 * Decides which rules an import, a replacement of a set or a merge writes (docs/api.md#r3). A rule has one source: a set, or a person or
 * program (manual). Rules of different sources, modes or ends may have the same value, and the verdict is that of all of them.
 *
 * These functions only compute. Their callers read and write the rules, and lock the organization meanwhile.
 */

import type { AccessRule } from '@keyward/contract'

import { inTurns } from '../../turns.ts'

/** The maximum number of unexpired rules with the same kind, type, value and scope. The engine reads this many in a check. */
export const MAX_RULES_OF_VALUE = 32

type Matched = Pick<AccessRule, 'kind' | 'type' | 'scope' | 'scopeId' | 'value'>

/** Returns a string that is equal for rules with the same kind, type, value and scope, and only for them. */
export function identityOf({ kind, type, scope, scopeId, value }: Matched): string {
  return JSON.stringify([kind, type, scope, scopeId, value])
}

/** The fields of a rule that determine its effect on the checks that it matches, and its source. */
export interface Effect {
  id: string
  /** The name of the set that the rule belongs to, or null for a manual rule. */
  set: string | null
  mode: AccessRule['mode']
  allowSuspendedOrExpired: boolean
  expiresAt: Date | null
}

/** An existing rule. */
export interface Existing extends Effect, Matched {
  note: string | null
  isExpired: boolean
}

const endOf = ({ expiresAt }: Pick<Effect, 'expiresAt'>): number => expiresAt?.getTime() ?? Infinity

const isSameKind = (one: Effect, other: Effect): boolean =>
  one.set === other.set && one.mode === other.mode && one.allowSuspendedOrExpired === other.allowSuspendedOrExpired

/** Returns whether `rule` does all that `other`, a rule with the same identity, does: same source, mode and option, and no sooner end. */
function covers(rule: Effect, other: Effect): boolean {
  return isSameKind(rule, other) && endOf(rule) >= endOf(other)
}

const isEqual = (one: Effect, other: Effect): boolean => isSameKind(one, other) && endOf(one) === endOf(other)

function groupBy<Value>(list: Iterable<Value>, keyOf: (value: Value) => string): Map<string, Value[]> {
  const groups = new Map<string, Value[]>()
  for (const value of list) {
    const key = keyOf(value)
    const group = groups.get(key)
    if (group) group.push(value)
    else groups.set(key, [value])
  }
  return groups
}

export interface Addition<Rule> {
  added: Rule[]
  /** The rows that an unexpired rule or another row covers, with the id of that rule. */
  skipped: { rule: Rule; by: string }[]
  /** The expired rules that the added rules replace. */
  replaced: Existing[]
  /** The rules whose value would have more than MAX_RULES_OF_VALUE rules. */
  excessive: Rule[]
}

/** Orders rules by their ends, the latest first. */
function byEnd(one: Effect, other: Effect): number {
  const [end, otherEnd] = [endOf(one), endOf(other)]
  return end === otherEnd ? 0 : end > otherEnd ? -1 : 1
}

/**
 * Computes the addition of rules. `existing` contains every rule with the identity of one of them. No added rule covers another one, because
 * the rules that end last are added first.
 */
export async function planAddition<Rule extends Matched & Effect>(
  existing: readonly Existing[],
  rules: readonly Rule[],
): Promise<Addition<Rule>> {
  const stored = groupBy(existing, identityOf)
  const inForce = new Map<string, Effect[]>()
  const plan: Addition<Rule> = { added: [], skipped: [], replaced: [], excessive: [] }
  const coveredBy = new Map<Rule, string>()
  for await (const rule of inTurns(rules.toSorted(byEnd))) {
    const identity = identityOf(rule)
    const others = stored.get(identity) ?? []
    const active: Effect[] = inForce.get(identity) ?? others.filter(({ isExpired }) => !isExpired)
    inForce.set(identity, active)
    const by = active.find((other) => covers(other, rule))
    if (by) {
      coveredBy.set(rule, by.id)
      continue
    }
    plan.replaced.push(...others.filter(({ isExpired }) => isExpired))
    stored.delete(identity)
    active.push(rule)
    if (active.length > MAX_RULES_OF_VALUE) plan.excessive.push(rule)
  }
  for (const rule of rules) {
    const by = coveredBy.get(rule)
    if (by === undefined) plan.added.push(rule)
    else plan.skipped.push({ rule, by })
  }
  return plan
}

/** The differences between the rules of a set and a list. */
interface Replacement<Rule> {
  created: Rule[]
  /** The changed rules. Each has the id of the stored rule. */
  updated: Rule[]
  /** The unchanged rules. */
  unchanged: string[]
  /** The stored rules that the list does not contain, and expired rules, which the list cannot contain. */
  removed: Existing[]
  /** The number of expired rules in `removed` that a rule in `created` replaces. */
  renewed: number
  /** The ids of stored rules that are kept, by the ids of the rules of the list. */
  kept: Map<string, string>
}

/**
 * Compares the rules of a set with a list of rules that do not cover each other. A stored rule that has the effect of a row is kept for it.
 * Then each other row changes a remaining stored rule with its identity, or creates a rule.
 */
export async function planReplacement<Rule extends Matched & Effect & { note: string | null }>(
  stored: readonly Existing[],
  rules: readonly Rule[],
): Promise<Replacement<Rule>> {
  const plan: Replacement<Rule> = {
    created: [],
    updated: [],
    unchanged: [],
    removed: stored.filter(({ isExpired }) => isExpired),
    renewed: 0,
    kept: new Map(),
  }
  const rest = groupBy(
    stored.filter(({ isExpired }) => !isExpired),
    identityOf,
  )
  const keep = (rule: Rule, at: number, candidates: Existing[]): void => {
    const [found] = candidates.splice(at, 1)
    if (!found) return
    plan.kept.set(rule.id, found.id)
    if (isEqual(found, rule) && found.note === rule.note) plan.unchanged.push(found.id)
    else plan.updated.push({ ...rule, id: found.id })
  }
  const others: Rule[] = []
  for await (const rule of inTurns(rules)) {
    const candidates = rest.get(identityOf(rule)) ?? []
    const at = candidates.findIndex((one) => isEqual(one, rule))
    if (at >= 0) keep(rule, at, candidates)
    else others.push(rule)
  }
  for await (const rule of inTurns(others)) {
    const candidates = rest.get(identityOf(rule)) ?? []
    if (candidates.length > 0) keep(rule, 0, candidates)
    else plan.created.push(rule)
  }
  const created = new Set(plan.created.map(identityOf))
  plan.renewed = plan.removed.filter((rule) => created.has(identityOf(rule))).length
  for (const candidates of rest.values()) plan.removed.push(...candidates)
  return plan
}

/** The rules of two customers that are merged. */
export interface Merge<Rule> {
  /** Pairs of equal rules. The first one is deleted, and its counters are added to those of the second one. */
  folded: { gone: Rule; kept: Rule }[]
  /** The rules that move to the remaining customer. */
  moved: Rule[]
  /** Whether the remaining customer would have more than MAX_RULES_OF_VALUE rules of one kind and scope. */
  isExcessive: boolean
}

/** Computes the merge of a customer's rules into those of another customer. Only rules with equal source, mode and end become one rule. */
export function planMerge<Rule extends Matched & Effect>(gone: readonly Rule[], kept: readonly Rule[]): Merge<Rule> {
  const scopeOf = (rule: Rule) => identityOf({ ...rule, value: '' })
  const plan: Merge<Rule> = { folded: [], moved: [], isExcessive: false }
  const remaining = groupBy(kept, scopeOf)
  for (const rule of gone) {
    const others = remaining.get(scopeOf(rule)) ?? []
    remaining.set(scopeOf(rule), others)
    const equal = others.find((other) => isEqual(other, rule))
    if (equal) {
      plan.folded.push({ gone: rule, kept: equal })
      continue
    }
    plan.moved.push(rule)
    others.push(rule)
    if (others.length > MAX_RULES_OF_VALUE) plan.isExcessive = true
  }
  return plan
}
