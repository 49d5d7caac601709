/**
 * Finds the unexpired access rules of one scope that match a check, by address, machine id, country and customer (docs/api.md#v2). A type
 * without rules in the scope costs one comparison. A scope without restrictions costs one more comparison.
 */

import { type Check, MATCHED_CAPACITY, type Verdict } from '../check.ts'
import type { ReadStore } from '../memory/index-store.ts'
import {
  EXPIRY,
  GENERATION,
  ID,
  RESTRICTION_TYPE_COUNT,
  restrictionType,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ALLOW,
  RULE_EXCLUSION,
  RULE_HOLLOW,
  RULE_MONITOR,
  RULE_NEXT,
  RULE_RESTRICTION,
  RULE_TRAITS,
  rulePrefixLength,
  ruleType,
  SCOPE_COUNTS,
  SCOPE_RESTRICTED_UNTIL,
  SCOPE_ROOT4,
  SCOPE_ROOT6,
  TYPE_COUNTRY,
  TYPE_CUSTOMER,
  TYPE_HWID,
  TYPE_IP6,
} from '../memory/layout.ts'
import { findCovers, MAX_COVERS } from '../memory/prefix-trie.ts'

/**
 * The maximum number of rules with the same scope and value that a check reads. The management service stores at most 32 of each kind
 * (docs/api.md#r3), and a change in phases doubles their rows. The maximum also bounds reads during a concurrent write.
 */
const MAX_DUPLICATES = 256

/** The result of `match` when only restrictions of the scope reject the check. */
export const RESTRICTED = -1

/**
 * The number that yields the offset of a type's count in a scope record when the type is added. Rules about addresses are in tries and have
 * no count.
 */
const COUNTS_BY_TYPE = SCOPE_COUNTS - TYPE_HWID

/** The traits of rules that do not decide when they match. */
const PASSIVE = RULE_RESTRICTION | RULE_MONITOR
/** A matching rule is a satisfied restriction when RULE_RESTRICTION is the only one of these bits that it has. */
const SATISFYING_MASK = RULE_RESTRICTION | RULE_MONITOR | RULE_HOLLOW

export class RuleMatching {
  /**
   * The types whose restrictions rejected the check in the last `match`, in the form of `Verdict.restrictedTypes`. 0
   * when an exclusion of the scope decided.
   */
  unsatisfied = 0
  readonly #store: ReadStore
  readonly #covers = new Int32Array(MAX_COVERS)
  readonly #exact = new Int32Array(MAX_DUPLICATES)
  /** The first of the deciding rules that `match` has found, in the order of `precedes`, or 0. */
  #first = 0
  /** The types of the satisfied restrictions that `match` has found, in the form of `Verdict.restrictedTypes`. */
  #satisfied = 0

  constructor(store: ReadStore) {
    this.#store = store
  }

  /**
   * Appends the matching rules of a scope to `verdict.matched`. Returns the rule that decides in this scope, the first
   * in the order of `precedes`. Without a deciding rule, returns RESTRICTED if the scope's restrictions reject the
   * check, otherwise 0.
   */
  match(
    scope: number,
    customer: number,
    check: Check,
    machineHash: Int32Array,
    nowMs: number,
    verdict: Verdict,
  ): number {
    const { words } = this.#store.scopes.region
    const base = scope * ROW_WORDS
    const counts = base + COUNTS_BY_TYPE
    this.#first = 0
    this.#satisfied = 0
    if (check.addressFamily === 4) {
      const root = words[base + SCOPE_ROOT4]!
      if (root !== 0) this.#matchAddress(root, check, nowMs, verdict)
    } else if (check.addressFamily === 6) {
      const root = words[base + SCOPE_ROOT6]!
      if (root !== 0) this.#matchAddress(root, check, nowMs, verdict)
    }
    if (words[counts + TYPE_HWID]! > 0 && check.machineIdLength > 0) {
      const h = machineHash
      this.#matchExact(scope, TYPE_HWID, h[0]!, h[1]!, h[2]!, h[3]!, nowMs, verdict)
    }
    if (words[counts + TYPE_COUNTRY]! > 0 && check.country !== 0) {
      this.#matchExact(scope, TYPE_COUNTRY, check.country, 0, 0, 0, nowMs, verdict)
    }
    if (words[counts + TYPE_CUSTOMER]! > 0) this.#matchExact(scope, TYPE_CUSTOMER, customer, 0, 0, 0, nowMs, verdict)
    const rules = this.#store.rules.region.words
    const rule = this.#first
    this.unsatisfied = 0
    const until = base + SCOPE_RESTRICTED_UNTIL
    // These words are the upper halves of three doubles. Such a word is 0 only if the time is 0.
    if ((words[until + 1]! | words[until + 3]! | words[until + 5]!) === 0) return rule
    if (rule !== 0 && (rules[rule * ROW_WORDS + RULE_TRAITS]! & RULE_EXCLUSION) !== 0) return rule
    this.unsatisfied = this.#restrictedTypes(scope, nowMs) & ~this.#satisfied
    return rule === 0 && this.unsatisfied !== 0 ? RESTRICTED : rule
  }

  /** Returns the types for which the scope has unexpired, enforced restrictions. */
  #restrictedTypes(scope: number, nowMs: number): number {
    const { doubles } = this.#store.scopes.region
    const until = scope * ROW_DOUBLES + SCOPE_RESTRICTED_UNTIL / 2
    let types = 0
    for (let i = 0; i < RESTRICTION_TYPE_COUNT; i++) if (doubles[until + i]! > nowMs) types |= 1 << i
    return types
  }

  /**
   * Prefetches the buckets in which `match` looks for a scope's rules about the machine and the customer. When it is
   * called for several scopes before the first `match`, the loads overlap.
   */
  prefetch(scope: number, customer: number, check: Check, machineHash: Int32Array): void {
    const { lookup, scopes } = this.#store
    const { words } = scopes.region
    const counts = scope * ROW_WORDS + COUNTS_BY_TYPE
    if (words[counts + TYPE_HWID]! > 0 && check.machineIdLength > 0) {
      lookup.prefetchRules(scope, TYPE_HWID, machineHash[0]!)
    }
    if (words[counts + TYPE_CUSTOMER]! > 0) lookup.prefetchRules(scope, TYPE_CUSTOMER, customer)
  }

  #matchAddress(root: number, check: Check, nowMs: number, verdict: Verdict): void {
    const covers = this.#covers
    const nodes = this.#store.nodes.region.words
    const rules = this.#store.rules.region.words
    const found = findCovers(nodes, rules, root, check.a0 | 0, check.a1 | 0, check.a2 | 0, check.a3 | 0, covers)
    for (let i = 0; i < found; i++) {
      let rule = covers[i]!
      for (let duplicates = 0; rule !== 0 && duplicates < MAX_DUPLICATES; duplicates++) {
        this.#add(rule, nowMs, verdict)
        rule = rules[rule * ROW_WORDS + RULE_NEXT]! | 0
      }
    }
  }

  #matchExact(
    scope: number,
    type: number,
    v0: number,
    v1: number,
    v2: number,
    v3: number,
    nowMs: number,
    verdict: Verdict,
  ): void {
    const exact = this.#exact
    const found = this.#store.lookup.findRules(scope, type, v0, v1, v2, v3, exact)
    for (let i = 0; i < found; i++) this.#add(exact[i]!, nowMs, verdict)
  }

  /**
   * Appends the rule to `verdict.matched`, unless it has expired. If the list is full, a rule that precedes the others
   * replaces the last entry.
   */
  #add(rule: number, nowMs: number, verdict: Verdict): void {
    const { doubles, words } = this.#store.rules.region
    if (!(doubles[rule * ROW_DOUBLES + EXPIRY]! > nowMs)) return
    const traits = words[rule * ROW_WORDS + RULE_TRAITS]!
    if ((traits & PASSIVE) === 0) {
      if (this.#first === 0 || precedes(words, rule, this.#first)) this.#first = rule
    } else if ((traits & SATISFYING_MASK) === RULE_RESTRICTION) {
      this.#satisfied |= 1 << restrictionType(ruleType(traits))
    }
    if (verdict.matchedCount >= MATCHED_CAPACITY) {
      if (rule !== this.#first) return
      verdict.matchedCount -= 1
    }
    verdict.matched[verdict.matchedCount] = rule
    verdict.matchedGenerations[verdict.matchedCount] = words[rule * ROW_WORDS + GENERATION]!
    verdict.matchedCount += 1
  }
}

/**
 * Returns whether `rule` takes precedence over `other`, a rule of the same scope. An exclusion precedes a blacklist (docs/api.md#v4). Among
 * exclusions, one that allows suspended and expired licenses comes first. Then a longer prefix comes first, and a rule without a prefix
 * comes after all prefixes. Then the older rule comes first.
 */
function precedes(rules: Int32Array, rule: number, other: number): boolean {
  const traits = rules[rule * ROW_WORDS + RULE_TRAITS]!
  const otherTraits = rules[other * ROW_WORDS + RULE_TRAITS]!
  const exclusion = (traits & RULE_EXCLUSION) - (otherTraits & RULE_EXCLUSION)
  if (exclusion !== 0) return exclusion > 0
  const allow = (traits & RULE_ALLOW) - (otherTraits & RULE_ALLOW)
  if (allow !== 0) return allow > 0
  const length = specificity(traits) - specificity(otherTraits)
  if (length !== 0) return length > 0
  for (let i = 0; i < 4; i++) {
    const word = rules[rule * ROW_WORDS + ID + i]! >>> 0
    const otherWord = rules[other * ROW_WORDS + ID + i]! >>> 0
    if (word !== otherWord) return word < otherWord
  }
  return false
}

function specificity(traits: number): number {
  return ruleType(traits) <= TYPE_IP6 ? rulePrefixLength(traits) : -1
}
