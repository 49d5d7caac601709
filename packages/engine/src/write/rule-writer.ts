/**
 * Writes access rules: the record, and its place in a trie or in the lookup of its scope. A rule is identified by its
 * id, so a new duplicate of an expired rule may arrive before the deletion of the expired one.
 */

import {
  CUSTOMER_CHILDREN,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  EXPIRY,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_PRODUCT,
  ORGANIZATION_ADDRESS_RULES,
  ORGANIZATION_CHILDREN,
  PRODUCT_ORGANIZATION,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_ALLOW,
  RULE_EXCLUSION,
  RULE_ORGANIZATION,
  RULE_PREFIX_SHIFT,
  RULE_SCOPE,
  RULE_TRAITS,
  RULE_TYPE_SHIFT,
  RULE_VALUE,
  ruleType,
  SCOPE_ROOT4,
  SCOPE_ROOT6,
  TYPE_COUNTRY,
  TYPE_CUSTOMER,
  TYPE_HWID,
  TYPE_IP4,
  TYPE_IP6,
} from '../memory/layout.ts'
import type { AccessRuleRecord, Id } from '../model.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'
import { TrieWriter } from './trie-writer.ts'

export class RuleWriter {
  readonly #rows: RowWriter
  readonly #scopes: ScopeWriter
  readonly #trie: TrieWriter
  /** The value of the rule that is being written; passed on explicitly, and never kept. */
  readonly #scratch = new Int32Array(4)
  /** Rows that rules left when they moved to another customer. They are still in force. */
  readonly #outgoing: number[] = []

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.#rows = rows
    this.#scopes = scopes
    this.#trie = new TrieWriter(rows.store.nodes, rows.store.rules.region)
  }

  /** Adds or replaces a rule. Returns the reason for which it is rejected, or null. */
  upsert(record: AccessRuleRecord): string | null {
    const { lookup } = this.#rows.store
    const organization = lookup.findId(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return 'organizationId refers to no organization'
    const ownerKind = OWNER_KINDS[record.scope]
    const owner = record.scopeId === null ? organization : lookup.findId(ownerKind, record.scopeId)
    if (owner === 0 || this.#organizationOf(ownerKind, owner) !== organization) {
      return 'scopeId refers to no license or product of the organization'
    }
    const value = this.#scratch
    const type = this.#readValue(record, organization, value)
    if (type < 0) return 'customerId refers to no customer of the organization'
    const prefixLength = record.type === 'IP' ? record.network.prefixLength : 0
    const match = (prefixLength << RULE_PREFIX_SHIFT) | (type << RULE_TYPE_SHIFT)
    this.#write(record, organization, ownerKind, owner, match, value)
    return null
  }

  /** Returns whether the record needs a new row: for a new rule, or for one that moves and stays in its old row for a while. */
  takesRow(record: AccessRuleRecord): boolean {
    const { lookup } = this.#rows.store
    const row = lookup.findId(KIND_RULE, record.id)
    if (row === 0) return true
    const value = this.#scratch
    const type = this.#readValue(record, lookup.findId(KIND_ORGANIZATION, record.organizationId), value)
    return this.#movesCustomer(row, type, value)
  }

  remove(row: number): null {
    this.#unlink(row)
    this.#rows.destroy(KIND_RULE, row)
    return null
  }

  /**
   * Removes the rows that moved rules left. The writer calls it after the licenses have moved too; the end of a reload
   * removes such rows by their mark instead.
   */
  removeOutgoing(): void {
    for (const row of this.#outgoing.splice(0)) this.remove(row)
  }

  forgetOutgoing(): void {
    this.#outgoing.length = 0
  }

  get hasOutgoing(): boolean {
    return this.#outgoing.length > 0
  }

  /** `match`: type and prefix length, as the traits hold them. `value`: four words, as the record holds them. */
  #write(
    record: AccessRuleRecord,
    organization: number,
    ownerKind: number,
    owner: number,
    match: number,
    value: Int32Array,
  ): void {
    const { lookup, rules } = this.#rows.store
    let row = lookup.findId(KIND_RULE, record.id)
    if (row !== 0 && this.#movesCustomer(row, ruleType(match), value)) {
      this.#leave(row)
      row = 0
    }
    // Unlink before the new scope is looked up, because unlinking may free the scope's record.
    if (row === 0) row = this.#rows.create(KIND_RULE, record.id)
    else this.#unlink(row)
    const { words, doubles } = rules.region
    const base = row * ROW_WORDS
    for (let i = 0; i < 4; i++) words[base + RULE_VALUE + i] = value[i]!
    words[base + RULE_SCOPE] = this.#scopes.findOrCreate(ownerKind, owner)
    words[base + RULE_ORGANIZATION] = organization
    words[base + RULE_TRAITS] =
      match |
      (record.kind === 'EXCLUSION' ? RULE_EXCLUSION : 0) |
      (record.allowSuspendedOrExpired ? RULE_ALLOW : 0) |
      this.#rows.mark
    doubles[row * ROW_DOUBLES + EXPIRY] = record.expiresAtMs
    this.#link(row)
  }

  /** A merge of customers moves a rule and then licenses. Until all have moved, the rule applies to both customers. */
  #movesCustomer(row: number, type: number, value: Int32Array): boolean {
    const { words } = this.#rows.store.rules.region
    const base = row * ROW_WORDS
    const areCustomers = type === TYPE_CUSTOMER && ruleType(words[base + RULE_TRAITS]!) === TYPE_CUSTOMER
    return areCustomers && words[base + RULE_VALUE] !== value[0]
  }

  /** Detaches the row from its rule's id. The row still matches. */
  #leave(row: number): void {
    this.#rows.store.lookup.removeId(KIND_RULE, row)
    this.#rows.setMark(KIND_RULE, row, this.#rows.mark ^ 1)
    this.#outgoing.push(row)
  }

  #link(row: number): void {
    const { lookup, rules, scopes } = this.#rows.store
    const scope = rules.region.words[row * ROW_WORDS + RULE_SCOPE]!
    const type = ruleType(rules.region.words[row * ROW_WORDS + RULE_TRAITS]!)
    if (type <= TYPE_IP6) this.#trie.insert(scopes.region.words, rootOf(scope, type), row)
    else lookup.addRule(row)
    this.#countAtParents(row, type, 1)
    this.#scopes.count(scope, type, 1)
  }

  #unlink(row: number): void {
    const { lookup, rules, scopes } = this.#rows.store
    const scope = rules.region.words[row * ROW_WORDS + RULE_SCOPE]!
    const type = ruleType(rules.region.words[row * ROW_WORDS + RULE_TRAITS]!)
    if (type <= TYPE_IP6) this.#trie.remove(scopes.region.words, rootOf(scope, type), row)
    else lookup.removeRule(row)
    this.#countAtParents(row, type, -1)
    this.#scopes.count(scope, type, -1)
  }

  #countAtParents(row: number, type: number, by: 1 | -1): void {
    const { rules, organizations, customers } = this.#rows.store
    const organization = rules.region.words[row * ROW_WORDS + RULE_ORGANIZATION]!
    const { words } = organizations.region
    words[organization * ROW_WORDS + ORGANIZATION_CHILDREN]! += by
    if (type <= TYPE_IP6 || type === TYPE_COUNTRY) words[organization * ROW_WORDS + ORGANIZATION_ADDRESS_RULES]! += by
    if (type === TYPE_CUSTOMER) {
      const customer = rules.region.words[row * ROW_WORDS + RULE_VALUE]!
      customers.region.words[customer * CUSTOMER_WORDS + CUSTOMER_CHILDREN]! += by
    }
  }

  /** Writes what the record matches to `value` and returns its type, or -1 when its customer is unknown. */
  #readValue(record: AccessRuleRecord, organization: number, value: Int32Array): number {
    value.fill(0)
    switch (record.type) {
      case 'IP':
        for (const [i, word] of record.network.words.entries()) value[i] = word
        return record.network.family === 4 ? TYPE_IP4 : TYPE_IP6
      case 'HWID':
        this.#rows.store.hash.hash(record.machineId, record.machineId.length, value)
        return TYPE_HWID
      case 'COUNTRY':
        value[0] = (record.country.charCodeAt(0) << 8) | record.country.charCodeAt(1)
        return TYPE_COUNTRY
      case 'CUSTOMER':
        value[0] = this.#customerOf(record.customerId, organization)
        return value[0] === 0 ? -1 : TYPE_CUSTOMER
      default:
        return record satisfies never
    }
  }

  #customerOf(id: Id, organization: number): number {
    const { lookup, customers } = this.#rows.store
    const row = lookup.findId(KIND_CUSTOMER, id)
    return customers.region.words[row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION] === organization ? row : 0
  }

  #organizationOf(ownerKind: number, owner: number): number {
    if (ownerKind === KIND_ORGANIZATION) return owner
    const { licenses, products } = this.#rows.store
    const product = ownerKind === KIND_PRODUCT ? owner : licenses.region.words[owner * ROW_WORDS + LICENSE_PRODUCT]!
    return products.region.words[product * ROW_WORDS + PRODUCT_ORGANIZATION]!
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
