/**
 * The access rules that match a check (API document, Resources and their fields, match types): all unexpired ones of
 * one scope, by address, machine id, country and customer. A scope without rules of a type costs a comparison.
 */
import { type Check, MATCHED_CAPACITY, type Verdict } from '../check.ts'
import type { IndexStore } from '../memory/index-store.ts'
import {
  EXPIRY,
  ID,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ALLOW,
  RULE_EXCLUSION,
  RULE_NEXT,
  RULE_TRAITS,
  rulePrefixLength,
  ruleType,
  SCOPE_COUNTS,
  SCOPE_ROOT4,
  SCOPE_ROOT6,
  GENERATION,
  TYPE_COUNTRY,
  TYPE_CUSTOMER,
  TYPE_HWID,
  TYPE_IP4,
  TYPE_IP6,
} from '../memory/layout.ts'
import { findCovers, MAX_COVERS } from '../memory/prefix-trie.ts'

/** A bound for torn memory; the writer keeps far fewer rules with one value. */
const MAX_TWINS_READ = 64

export class RuleMatching {
  private readonly store: IndexStore
  private readonly covers = new Int32Array(MAX_COVERS)
  private readonly exact = new Int32Array(MAX_TWINS_READ)
  private bestExclusion = 0
  private bestBlacklist = 0

  constructor(store: IndexStore) {
    this.store = store
  }

  /**
   * Adds the matching rules of a scope to `verdict.matched` and gives the row of the one that decides in this scope,
   * 0 when none matches: an exclusion before a blacklist (API document, Endpoints rule 4), then the best as `precedes` has it.
   */
  match(
    scope: number,
    customer: number,
    check: Check,
    machineHash: Int32Array,
    nowMs: number,
    verdict: Verdict,
  ): number {
    const { words } = this.store.scopes.region
    const counts = scope * ROW_WORDS + SCOPE_COUNTS
    this.bestExclusion = 0
    this.bestBlacklist = 0
    if (check.addressFamily === 4) {
      if (words[counts + TYPE_IP4]! > 0)
        this.matchAddress(words[scope * ROW_WORDS + SCOPE_ROOT4]!, check, nowMs, verdict)
    } else if (check.addressFamily === 6) {
      if (words[counts + TYPE_IP6]! > 0)
        this.matchAddress(words[scope * ROW_WORDS + SCOPE_ROOT6]!, check, nowMs, verdict)
    }
    if (words[counts + TYPE_HWID]! > 0 && check.machineIdLength > 0) {
      const h = machineHash
      this.matchExact(scope, TYPE_HWID, h[0]!, h[1]!, h[2]!, h[3]!, nowMs, verdict)
    }
    if (words[counts + TYPE_COUNTRY]! > 0 && check.country !== 0) {
      this.matchExact(scope, TYPE_COUNTRY, check.country, 0, 0, 0, nowMs, verdict)
    }
    if (words[counts + TYPE_CUSTOMER]! > 0) this.matchExact(scope, TYPE_CUSTOMER, customer, 0, 0, 0, nowMs, verdict)
    return this.bestExclusion === 0 ? this.bestBlacklist : this.bestExclusion
  }

  /**
   * Begins to fetch the entries of a scope's exact rules. Asked of all scopes before the first is matched, memory brings
   * them at once instead of one after the other.
   */
  touch(scope: number, customer: number, check: Check, machineHash: Int32Array): void {
    const { directory, scopes } = this.store
    const { words } = scopes.region
    const counts = scope * ROW_WORDS + SCOPE_COUNTS
    if (words[counts + TYPE_HWID]! > 0 && check.machineIdLength > 0)
      directory.touched = directory.touchRules(scope, TYPE_HWID, machineHash[0]!)
    if (words[counts + TYPE_CUSTOMER]! > 0) directory.touched = directory.touchRules(scope, TYPE_CUSTOMER, customer)
  }

  private matchAddress(root: number, check: Check, nowMs: number, verdict: Verdict): void {
    const nodes = this.store.trieNodes.region.words
    const rules = this.store.rules.region.words
    const found = findCovers(nodes, rules, root, check.a0 | 0, check.a1 | 0, check.a2 | 0, check.a3 | 0, this.covers)
    for (let i = 0; i < found; i++) {
      let rule = this.covers[i]!
      for (let twins = 0; rule !== 0 && twins < MAX_TWINS_READ; twins++) {
        this.add(rule, nowMs, verdict)
        rule = rules[rule * ROW_WORDS + RULE_NEXT]! | 0
      }
    }
  }

  private matchExact(
    scope: number,
    type: number,
    v0: number,
    v1: number,
    v2: number,
    v3: number,
    nowMs: number,
    verdict: Verdict,
  ): void {
    const found = this.store.directory.findRules(scope, type, v0, v1, v2, v3, this.exact)
    for (let i = 0; i < found; i++) this.add(this.exact[i]!, nowMs, verdict)
  }

  /** Counts the rule as matched, unless it has expired, and remembers it if it is the best of its kind so far. */
  private add(rule: number, nowMs: number, verdict: Verdict): void {
    const { region } = this.store.rules
    if (!(region.doubles[rule * ROW_DOUBLES + EXPIRY]! > nowMs)) return
    if (verdict.matchedCount >= MATCHED_CAPACITY) return
    verdict.matched[verdict.matchedCount] = rule
    verdict.matchedGenerations[verdict.matchedCount] = region.words[rule * ROW_WORDS + GENERATION]!
    verdict.matchedCount += 1
    if ((region.words[rule * ROW_WORDS + RULE_TRAITS]! & RULE_EXCLUSION) !== 0) {
      if (this.bestExclusion === 0 || precedes(region.words, rule, this.bestExclusion)) this.bestExclusion = rule
    } else if (this.bestBlacklist === 0 || precedes(region.words, rule, this.bestBlacklist)) this.bestBlacklist = rule
  }
}

/**
 * Which of two rules of one scope and kind is said to decide: one that lets suspended and expired licenses through,
 * then the longest prefix (a rule that is not about addresses counts as the shortest), then the oldest.
 */
function precedes(rules: Int32Array, rule: number, other: number): boolean {
  const traits = rules[rule * ROW_WORDS + RULE_TRAITS]!
  const otherTraits = rules[other * ROW_WORDS + RULE_TRAITS]!
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
