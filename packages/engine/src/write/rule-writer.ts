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
  TENANT_CHILDREN,
  TYPE_COUNTRY,
  TYPE_CUSTOMER,
  TYPE_HWID,
  TYPE_IP4,
  TYPE_IP6,
} from '../memory/layout.ts'
/**
 * Writes access rules: the record, and its place in the trie or the directory of its scope. A rule is known by its id,
 * so a new twin of an expired rule may arrive before the old one's deletion.
 */
import type { AccessRuleRecord, Id } from '../model.ts'
import { unreachable } from '../unreachable.ts'
import type { RowWriter } from './row-writer.ts'
import type { ScopeWriter } from './scope-writer.ts'
import { PrefixTrieWriter } from './trie-writer.ts'

export class RuleWriter {
  private readonly rows: RowWriter
  private readonly scopes: ScopeWriter
  private readonly trie: PrefixTrieWriter
  /** The value of the rule being written. */
  private readonly value = new Int32Array(4)
  /** Rows of rules that moved to another customer, still in force. */
  private readonly outgoing: number[] = []

  constructor(rows: RowWriter, scopes: ScopeWriter) {
    this.rows = rows
    this.scopes = scopes
    this.trie = new PrefixTrieWriter(rows.store.trieNodes, rows.store.rules.region)
  }

  /** The reason for which the row is rejected, or null. */
  upsert(record: AccessRuleRecord): string | null {
    const { directory } = this.rows.store
    const organization = directory.findId(KIND_ORGANIZATION, record.organizationId)
    if (organization === 0) return 'the organization is unknown'
    const ownerKind = OWNER_KINDS[record.scope]
    const owner = record.scopeId === null ? organization : directory.findId(ownerKind, record.scopeId)
    if (owner === 0 || this.organizationOf(ownerKind, owner) !== organization) {
      return 'the scope is unknown in the organization'
    }
    const type = this.readValue(record, organization)
    if (type < 0) return 'the customer is unknown in the organization'
    const prefixLength = record.type === 'IP' ? record.network.prefixLength : 0
    this.write(record, organization, ownerKind, owner, (prefixLength << RULE_PREFIX_SHIFT) | (type << RULE_TYPE_SHIFT))
    return null
  }

  /** Whether the record needs a row of its own: a new one, or one that moves and stays for a while where it was, too. */
  takesRow(record: AccessRuleRecord): boolean {
    const { directory } = this.rows.store
    const row = directory.findId(KIND_RULE, record.id)
    if (row === 0) return true
    const type = this.readValue(record, directory.findId(KIND_ORGANIZATION, record.organizationId))
    return this.movesCustomer(row, type << RULE_TYPE_SHIFT)
  }

  remove(row: number): null {
    this.unlink(row)
    this.rows.destroy(KIND_RULE, row)
    return null
  }

  /**
   * Takes out what rules that moved to another customer have left behind; to be called once the licenses have moved,
   * too. In a reload that is its end, which finds them by their stamp.
   */
  removeOutgoing(): void {
    for (const row of this.outgoing.splice(0)) this.remove(row)
  }

  forgetOutgoing(): void {
    this.outgoing.length = 0
  }

  get hasOutgoing(): boolean {
    return this.outgoing.length > 0
  }

  private write(record: AccessRuleRecord, organization: number, ownerKind: number, owner: number, match: number): void {
    const { directory, rules } = this.rows.store
    let row = directory.findId(KIND_RULE, record.id)
    if (row !== 0 && this.movesCustomer(row, match)) {
      this.leave(row)
      row = 0
    }
    // The old place is left before the new scope is looked up: leaving may free the scope's record.
    if (row === 0) row = this.rows.create(KIND_RULE, record.id)
    else this.unlink(row)
    const { words, doubles } = rules.region
    const base = row * ROW_WORDS
    for (let i = 0; i < 4; i++) words[base + RULE_VALUE + i] = this.value[i]!
    words[base + RULE_SCOPE] = this.scopes.findOrCreate(ownerKind, owner)
    words[base + RULE_ORGANIZATION] = organization
    words[base + RULE_TRAITS] =
      match |
      (record.kind === 'EXCLUSION' ? RULE_EXCLUSION : 0) |
      (record.allowSuspendedOrExpired ? RULE_ALLOW : 0) |
      this.rows.stamp
    doubles[row * ROW_DOUBLES + EXPIRY] = record.expiresAtMs
    this.link(row)
  }

  /** When customers are merged, a rule moves and so do licenses; until all have, it holds for both customers. */
  private movesCustomer(row: number, match: number): boolean {
    const { words } = this.rows.store.rules.region
    const base = row * ROW_WORDS
    const types = ruleType(words[base + RULE_TRAITS]!) === TYPE_CUSTOMER && ruleType(match) === TYPE_CUSTOMER
    return types && words[base + RULE_VALUE] !== this.value[0]
  }

  /** The row goes on matching, but is no longer the rule of this id. */
  private leave(row: number): void {
    this.rows.store.directory.removeId(KIND_RULE, row)
    this.rows.setStamp(KIND_RULE, row, this.rows.stamp ^ 1)
    this.outgoing.push(row)
  }

  private link(row: number): void {
    const { directory, rules, scopes } = this.rows.store
    const scope = rules.region.words[row * ROW_WORDS + RULE_SCOPE]!
    const type = ruleType(rules.region.words[row * ROW_WORDS + RULE_TRAITS]!)
    if (type <= TYPE_IP6) this.trie.insert(scopes.region.words, rootOf(scope, type), row)
    else directory.addRule(row)
    this.countAtParents(row, type, 1)
    this.scopes.count(scope, type, 1)
  }

  private unlink(row: number): void {
    const { directory, rules, scopes } = this.rows.store
    const scope = rules.region.words[row * ROW_WORDS + RULE_SCOPE]!
    const type = ruleType(rules.region.words[row * ROW_WORDS + RULE_TRAITS]!)
    if (type <= TYPE_IP6) this.trie.remove(scopes.region.words, rootOf(scope, type), row)
    else directory.removeRule(row)
    this.countAtParents(row, type, -1)
    this.scopes.count(scope, type, -1)
  }

  private countAtParents(row: number, type: number, by: 1 | -1): void {
    const { rules, organizations, customers } = this.rows.store
    const organization = rules.region.words[row * ROW_WORDS + RULE_ORGANIZATION]!
    const { words } = organizations.region
    words[organization * ROW_WORDS + TENANT_CHILDREN]! += by
    if (type <= TYPE_IP6 || type === TYPE_COUNTRY) words[organization * ROW_WORDS + ORGANIZATION_ADDRESS_RULES]! += by
    if (type === TYPE_CUSTOMER) {
      const customer = rules.region.words[row * ROW_WORDS + RULE_VALUE]!
      customers.region.words[customer * CUSTOMER_WORDS + CUSTOMER_CHILDREN]! += by
    }
  }

  /** Reads what the record matches into `value` and gives its type; -1 when it names an unknown customer. */
  private readValue(record: AccessRuleRecord, organization: number): number {
    const { value } = this
    value.fill(0)
    switch (record.type) {
      case 'IP':
        for (const [i, word] of record.network.words.entries()) value[i] = word
        return record.network.family === 4 ? TYPE_IP4 : TYPE_IP6
      case 'HWID':
        this.rows.store.hash.hash(record.machineId, record.machineId.length)
        value.set(this.rows.store.hash.words)
        return TYPE_HWID
      case 'COUNTRY':
        value[0] = (record.country.charCodeAt(0) << 8) | record.country.charCodeAt(1)
        return TYPE_COUNTRY
      case 'CUSTOMER':
        value[0] = this.customerOf(record.customerId, organization)
        return value[0] === 0 ? -1 : TYPE_CUSTOMER
      default:
        return unreachable(record)
    }
  }

  private customerOf(id: Id, organization: number): number {
    const { directory, customers } = this.rows.store
    const row = directory.findId(KIND_CUSTOMER, id)
    return customers.region.words[row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION] === organization ? row : 0
  }

  private organizationOf(ownerKind: number, owner: number): number {
    if (ownerKind === KIND_ORGANIZATION) return owner
    const { licenses, products } = this.rows.store
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
