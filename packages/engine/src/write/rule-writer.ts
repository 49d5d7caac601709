/**
 * Writes access rules: the record, and its entry in a trie of its scope or in the lookup of rules. A rule is identified by
 * its id, so several rules of different sources may have the same value.
 */

import {
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  dependsOnOrigin,
  EXPIRY,
  GENERATION,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_PRODUCT,
  MARK,
  ORGANIZATION_ADDRESS_RULES,
  ORGANIZATION_CHILDREN,
  PRODUCT_ORGANIZATION,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ALLOW,
  RULE_DORMANT,
  RULE_EXCLUSION,
  RULE_HOLLOW,
  RULE_MONITOR,
  RULE_ORGANIZATION,
  RULE_PREFIX_MASK,
  RULE_PREFIX_SHIFT,
  RULE_RESTRICTION,
  RULE_SCOPE,
  RULE_TRAITS,
  RULE_TYPE_MASK,
  RULE_TYPE_SHIFT,
  RULE_VALUE,
  ruleType,
  SCOPE_OWNER_KIND,
  SCOPE_ROOT4,
  SCOPE_ROOT6,
  TYPE_CUSTOMER,
  TYPE_IP4,
  TYPE_IP6,
} from '../memory/layout.ts'
import type { AccessRuleRecord, Id, RuleChange } from '../model.ts'
import { RestrictionTimes } from './restriction-times.ts'
import type { RowWriter } from './row-writer.ts'
import { writeMatch } from './rule-match.ts'
import type { ScopeWriter } from './scope-writer.ts'
import { beginLoosening, endRestricting, type RuleRef, type RunSection, Transition } from './transition.ts'
import { TrieWriter } from './trie-writer.ts'

/** The bits of a rule's traits that determine what the rule matches: type and prefix length. */
const MATCH_BITS = (RULE_TYPE_MASK << RULE_TYPE_SHIFT) | (RULE_PREFIX_MASK << RULE_PREFIX_SHIFT)

/**
 * The rows that a record refers to, and the value that the rule matches. `value` is valid until the next record is resolved.
 */
interface Target {
  organization: number
  ownerKind: number
  owner: number
  /** The type and the prefix length, as bits of the traits. */
  match: number
  /** The four words of the value, as the rule's row stores them. */
  value: Int32Array
}

const KIND_BITS: Record<AccessRuleRecord['kind'], number> = {
  BLACKLIST: 0,
  EXCLUSION: RULE_EXCLUSION,
  RESTRICTION: RULE_RESTRICTION,
}

function traitsOf(record: AccessRuleRecord, { match }: Target): number {
  const mode = record.mode === 'MONITOR' ? RULE_MONITOR : 0
  return match | KIND_BITS[record.kind] | mode | (record.allowSuspendedOrExpired ? RULE_ALLOW : 0)
}

export class RuleWriter {
  readonly #rows: RowWriter
  readonly #scopes: ScopeWriter
  readonly #trie: TrieWriter
  /** A buffer for the value of the rule that is being written. */
  readonly #scratch = new Int32Array(4)
  readonly #times: RestrictionTimes
  /** The transition of the change that is being written in phases. `IndexWriter` replaces the object while it writes a change in pages. */
  transition = new Transition()

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.#rows = rows
    this.#scopes = scopes
    this.#trie = new TrieWriter(rows.store.nodes, rows.store.rules.region)
    this.#times = new RestrictionTimes(rows.store)
  }

  /** Adds or replaces a rule. Returns null, or the reason for its rejection. */
  upsert(record: AccessRuleRecord): string | null {
    const target = this.#resolve(record)
    if (typeof target === 'string') return target
    const row = this.#write(record, target)
    const { companions } = this.transition
    const companion = companions.get(row)
    if (companion === undefined) return null
    companions.delete(row)
    this.#removeWithoutId(companion)
    return null
  }

  /**
   * Returns the rule's row if all of its fields equal the record's, apart from `ignoredBits` of its traits, otherwise
   * 0.
   */
  findEqual(record: AccessRuleRecord, ignoredBits = 0): number {
    const row = this.#rows.store.lookup.findId(KIND_RULE, record.id)
    if (row === 0) return 0
    const target = this.#resolve(record)
    if (typeof target === 'string' || !this.#hasTarget(row, target)) return 0
    const words = this.#rows.store.rules.region
    const traits = words.get(row * ROW_WORDS + RULE_TRAITS) & ~(MARK | ignoredBits)
    return traits === traitsOf(record, target) && words.getDouble(row * ROW_DOUBLES + EXPIRY) === record.expiresAtMs
      ? row
      : 0
  }

  /**
   * Writes only the restricting part of a change. Afterwards the rules allow only checks that both the former rules and the new row allow.
   * `upsert` or `remove` completes the change later, and `removeDetached` removes the rows that this method leaves in force.
   *
   * A blacklist stays in force. If only its expiry changes, the later expiry applies. An exclusion is removed. But if it lacks
   * `allowSuspendedOrExpired` and may hide exclusions of broader scopes that have this field, it becomes a blacklist. `transition.ts`
   * describes how restrictions change. Monitored rules decide nothing, so they are written later.
   */
  restrict({ id, row: record }: RuleChange): void {
    const target = record === null ? null : this.#resolve(record)
    if (typeof target === 'string') return
    if (record !== null && this.findEqual(record) !== 0) return
    const row = this.#rows.store.lookup.findId(KIND_RULE, id)
    const isDone = row !== 0 && this.#restrictOld(row, record, target)
    if (isDone || record === null || target === null || record.mode === 'MONITOR') return
    if (record.kind === 'RESTRICTION') {
      this.#addRestriction(record, target)
      return
    }
    const hides = record.scope !== 'ORGANIZATION' && !record.allowSuspendedOrExpired
    if (record.kind === 'BLACKLIST' || hides) this.#write({ ...record, kind: 'BLACKLIST' }, target)
  }

  /** Restricts the existing rule. Returns whether `restrict` has nothing left to do. */
  #restrictOld(row: number, record: AccessRuleRecord | null, target: Target | null): boolean {
    const words = this.#rows.store.rules.region
    const traits = words.get(row * ROW_WORDS + RULE_TRAITS)
    if ((traits & RULE_MONITOR) !== 0) return false
    if ((traits & RULE_RESTRICTION) !== 0) return this.#restrictRestriction(row, record, target)
    if ((traits & RULE_EXCLUSION) !== 0) {
      const mayHide = this.#scopeKind(row) !== KIND_ORGANIZATION && (traits & RULE_ALLOW) === 0
      if (mayHide) this.#detach(row)
      else this.remove(row)
      return false
    }
    if (record === null || target === null) return true
    if (record.kind === 'BLACKLIST' && record.mode === 'ENFORCE' && this.#hasTarget(row, target)) {
      words.setDouble(
        row * ROW_DOUBLES + EXPIRY,
        Math.max(words.getDouble(row * ROW_DOUBLES + EXPIRY), record.expiresAtMs),
      )
      return true
    }
    this.#detach(row)
    return false
  }

  /** Restricts an existing, enforced restriction. Returns whether `restrict` has nothing left to do. */
  #restrictRestriction(row: number, record: AccessRuleRecord | null, target: Target | null): boolean {
    const words = this.#rows.store.rules.region
    const traits = words.get(row * ROW_WORDS + RULE_TRAITS)
    const added = traits & (RULE_HOLLOW | RULE_DORMANT)
    if (added !== 0) {
      // An earlier, unfinished change has added this row.
      if (record !== null && this.findEqual(record, added) !== 0) {
        if ((added & RULE_DORMANT) !== 0) this.transition.dormant.push(this.#ruleRow(row))
        return true
      }
      if ((added & RULE_DORMANT) !== 0) this.remove(row)
      else this.#detach(row)
      return false
    }
    if (record === null || target === null) {
      this.transition.leaving.push(this.#ruleRow(row))
      return true
    }
    const endMs = words.getDouble(row * ROW_DOUBLES + EXPIRY)
    const staysRestriction = record.kind === 'RESTRICTION' && record.mode === 'ENFORCE' && this.#hasTarget(row, target)
    if (staysRestriction && record.expiresAtMs > endMs) {
      // Checks can satisfy the old row until it expires. The new row only restricts.
      this.#rows.store.lookup.removeId(KIND_RULE, row)
      this.transition.companions.set(this.#write(record, target, RULE_HOLLOW), row)
      return true
    }
    this.#detach(row)
    this.transition.leaving.push(this.#ruleRow(row))
    // The new row expires earlier. Until then it allows the same checks as the old one.
    if (staysRestriction) this.#write(record, target)
    return staysRestriction
  }

  /** Adds a restriction without allowing any further check. */
  #addRestriction(record: AccessRuleRecord, target: Target): void {
    const row = this.#write(record, target, RULE_DORMANT)
    if (this.#times.countOf(this.#times.keyOf(row)) === 0) {
      this.transition.dormant.push(this.#ruleRow(row))
      return
    }
    const at = row * ROW_WORDS + RULE_TRAITS
    const words = this.#rows.store.rules.region
    words.set(at, (words.get(at) & ~RULE_DORMANT) | RULE_HOLLOW)
    this.#times.add(row)
  }

  /** Ends the first phase of a change, in write sections of at most `rows` rows that `section` runs. */
  endRestricting(rows: number, section: RunSection): void {
    endRestricting(this.transition, this.#times, this.#rows.store.rules.region, rows, section)
  }

  /** Begins the last phase of a change, in write sections of at most `rows` rows that `section` runs. */
  beginLoosening(rows: number, section: RunSection): void {
    beginLoosening(this.transition, this.#times, this.#rows.store.rules.region, rows, section)
  }

  /** Rebuilds the expiries of restrictions, which only the writer's memory contains, after the index was restored or a section discarded. */
  rebuild(): void {
    this.#times.rebuild()
  }

  #ruleRow(row: number): RuleRef {
    return { row, generation: this.#rows.store.rules.region.get(row * ROW_WORDS + GENERATION) }
  }

  /**
   * Returns whether writing the record may need a new row. With `detaches`, it always may, because the former row of an
   * existing rule may stay in force.
   */
  takesRow(record: AccessRuleRecord, detaches: boolean): boolean {
    return detaches || this.#rows.store.lookup.findId(KIND_RULE, record.id) === 0
  }

  remove(row: number): null {
    this.#unlink(row)
    this.#rows.destroy(KIND_RULE, row)
    return null
  }

  /** Removes at most `count` of the rows that `restrict` left in force. */
  removeDetached(count: number): void {
    for (const row of this.transition.detached.splice(0, count)) this.#removeWithoutId(row)
  }

  /** Ends a change, even an abandoned one. Afterwards the transition is empty. */
  finish(rows: number, section: RunSection): void {
    const { transition } = this
    if (transition.isEmpty) return
    this.endRestricting(rows, section)
    this.beginLoosening(rows, section)
    transition.detached.push(...transition.companions.values())
    transition.companions.clear()
    while (transition.detached.length > 0) section(() => this.removeDetached(rows))
  }

  #removeWithoutId(row: number): void {
    this.#unlink(row)
    this.#rows.store.rules.free(row)
  }

  /** Returns the rows and the value of a record, or the reason for its rejection. */
  #resolve(record: AccessRuleRecord): Target | string {
    const { lookup } = this.#rows.store
    const organization = lookup.findId(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return 'organizationId refers to no organization'
    const ownerKind = OWNER_KINDS[record.scope]
    const owner = record.scopeId === null ? organization : lookup.findId(ownerKind, record.scopeId)
    if (owner === 0 || this.#organizationOf(ownerKind, owner) !== organization) {
      return 'scopeId refers to no license or product of the organization'
    }
    const value = this.#scratch
    const type = writeMatch(record, this.#rows.store.hash, (id) => this.#customerOf(id, organization), value)
    if (type < 0) return 'customerId refers to no customer of the organization'
    const prefixLength = record.type === 'IP' ? record.network.prefixLength : 0
    const match = (prefixLength << RULE_PREFIX_SHIFT) | (type << RULE_TYPE_SHIFT)
    return { organization, ownerKind, owner, match, value }
  }

  /** Writes a rule and returns its row. Sets `extraBits` in the traits of the rule. */
  #write(record: AccessRuleRecord, target: Target, extraBits = 0): number {
    const { lookup, rules } = this.#rows.store
    let row = lookup.findId(KIND_RULE, record.id)
    // Unlink before the new scope is looked up, because unlinking may free the scope's record.
    if (row === 0) row = this.#rows.create(KIND_RULE, record.id)
    else this.#unlink(row)
    const scope = this.#scopes.findOrCreate(target.ownerKind, target.owner)
    const { region } = rules
    const base = region.claim(row * ROW_WORDS)
    const words = region.located
    for (let i = 0; i < 4; i++) words[base + RULE_VALUE + i] = target.value[i]!
    words[base + RULE_SCOPE] = scope
    words[base + RULE_ORGANIZATION] = target.organization
    words[base + RULE_TRAITS] = traitsOf(record, target) | extraBits | this.#rows.mark
    region.setDouble(row * ROW_DOUBLES + EXPIRY, record.expiresAtMs)
    this.#link(row)
    return row
  }

  /** Returns whether the rule in a row has this scope and matches this value. */
  #hasTarget(row: number, { ownerKind, owner, match, value }: Target): boolean {
    const words = this.#rows.store.rules.region
    const base = row * ROW_WORDS
    return (
      words.get(base + RULE_SCOPE) === this.#scopes.find(ownerKind, owner) &&
      (words.get(base + RULE_TRAITS) & MATCH_BITS) === match &&
      value.every((word, i) => words.get(base + RULE_VALUE + i) === word)
    )
  }

  /**
   * Detaches a row from its rule's id. The row stays in force until `removeDetached`. An exclusion stays in force as a
   * blacklist.
   */
  #detach(row: number): void {
    this.#rows.store.lookup.removeId(KIND_RULE, row)
    const words = this.#rows.store.rules.region
    const at = row * ROW_WORDS + RULE_TRAITS
    words.set(at, words.get(at) & ~(RULE_EXCLUSION | RULE_ALLOW))
    this.transition.detached.push(row)
  }

  /** Returns the kind of the rule's scope. */
  #scopeKind(row: number): number {
    const { rules, scopes } = this.#rows.store
    return scopes.region.get(rules.region.get(row * ROW_WORDS + RULE_SCOPE) * ROW_WORDS + SCOPE_OWNER_KIND)
  }

  #link(row: number): void {
    const { lookup, rules, scopes } = this.#rows.store
    const scope = rules.region.get(row * ROW_WORDS + RULE_SCOPE)
    const type = ruleType(rules.region.get(row * ROW_WORDS + RULE_TRAITS))
    if (type <= TYPE_IP6) this.#trie.insert(scopes.region, rootOf(scope, type), row)
    else lookup.addRule(row)
    this.#times.add(row)
    this.#countAtParents(row, type, 1)
    this.#scopes.count(scope, type, 1)
  }

  #unlink(row: number): void {
    const { lookup, rules, scopes } = this.#rows.store
    const scope = rules.region.get(row * ROW_WORDS + RULE_SCOPE)
    const type = ruleType(rules.region.get(row * ROW_WORDS + RULE_TRAITS))
    if (type <= TYPE_IP6) this.#trie.remove(scopes.region, rootOf(scope, type), row)
    else lookup.removeRule(row)
    this.#times.delete(row)
    this.#countAtParents(row, type, -1)
    this.#scopes.count(scope, type, -1)
  }

  #countAtParents(row: number, type: number, by: 1 | -1): void {
    const { rules, organizations, customers } = this.#rows.store
    const organization = rules.region.get(row * ROW_WORDS + RULE_ORGANIZATION)
    const words = organizations.region
    words.add(organization * ROW_WORDS + ORGANIZATION_CHILDREN, by)
    if (dependsOnOrigin(type)) words.add(organization * ROW_WORDS + ORGANIZATION_ADDRESS_RULES, by)
    if (type === TYPE_CUSTOMER) {
      const customer = rules.region.get(row * ROW_WORDS + RULE_VALUE)
      customers.region.add(customer * CUSTOMER_WORDS + CUSTOMER_CHILDREN, by)
    }
  }

  #customerOf(id: Id, organization: number): number {
    const { lookup, customers } = this.#rows.store
    const row = lookup.findId(KIND_CUSTOMER, id)
    return customers.region.get(row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION) === organization ? row : 0
  }

  #organizationOf(ownerKind: number, owner: number): number {
    if (ownerKind === KIND_ORGANIZATION) return owner
    const { licenses, products } = this.#rows.store
    const product = ownerKind === KIND_PRODUCT ? owner : licenses.region.get(owner * ROW_WORDS + LICENSE_PRODUCT)
    return products.region.get(product * ROW_WORDS + PRODUCT_ORGANIZATION)
  }
}

const OWNER_KINDS: Record<AccessRuleRecord['scope'], number> = {
  ORGANIZATION: KIND_ORGANIZATION,
  PRODUCT: KIND_PRODUCT,
  LICENSE: KIND_LICENSE,
}

function rootOf(scope: number, type: number): number {
  return scope * ROW_WORDS + (type === TYPE_IP4 ? SCOPE_ROOT4 : SCOPE_ROOT6)
}
