/**
 * Determines the organization and the license of a change. A verdict depends only on rows of one organization, and a
 * license goes from its old to its new state in one step. Machine changes and deletions do not contain the organization,
 * so it is read from the index or from other changes of the batch.
 */

import { writeBytes } from '../memory/bits.ts'
import type { IndexStore } from '../memory/index-store.ts'
import {
  CREDENTIAL_ORGANIZATION_SHIFT,
  CREDENTIAL_STATE,
  CUSTOMER_ORGANIZATION,
  CUSTOMER_WORDS,
  ID,
  KIND_CREDENTIAL,
  KIND_CUSTOMER,
  KIND_LICENSE,
  KIND_ORGANIZATION,
  KIND_PRODUCT,
  KIND_RULE,
  LICENSE_PRODUCT,
  PRODUCT_ORGANIZATION,
  ROW_WORDS,
  RULE_ORGANIZATION,
  RULE_SCOPE,
  SCOPE_OWNER,
  SCOPE_OWNER_KIND,
} from '../memory/layout.ts'
import type { Change, Id } from '../model.ts'

/** The placeholder organization for a change whose row is in neither the index nor the batch. */
export const NOWHERE = 0

export const KINDS = {
  organization: KIND_ORGANIZATION,
  credential: KIND_CREDENTIAL,
  product: KIND_PRODUCT,
  customer: KIND_CUSTOMER,
  license: KIND_LICENSE,
  rule: KIND_RULE,
} as const satisfies Record<Exclude<Change['entity'], 'machine'>, number>

/** Returns an id as a string, which maps and sets compare by value. */
export function nameOf(id: Id): string {
  return String.fromCharCode(...id)
}

/** Determines the organizations and licenses of one batch of changes. It reads the index before the batch is applied. */
export class Placement {
  readonly #store: IndexStore
  /** Maps each organization that the batch adds to a number below 0. */
  readonly #newOrganizations = new Map<string, number>()
  /** The organizations of the licenses that the batch contains. */
  readonly #licenses = new Map<string, number>()

  constructor(store: IndexStore, changes: readonly Change[]) {
    this.#store = store
    for (const change of changes) {
      if (change.entity !== 'license' || change.row === null) continue
      this.#licenses.set(nameOf(change.id), this.#organizationWithId(change.row.organizationId))
    }
  }

  /** Returns the row of the change's organization, a number below 0 when the batch adds it, or NOWHERE. */
  organizationOf(change: Change): number {
    if (change.entity === 'organization') return this.#organizationWithId(change.id)
    if (change.entity === 'machine') {
      const row = this.#find(KIND_LICENSE, change.licenseId)
      return row === 0 ? (this.#licenses.get(nameOf(change.licenseId)) ?? NOWHERE) : this.#organizationOfLicense(row)
    }
    if (change.row !== null) return this.#organizationWithId(change.row.organizationId)
    const row = this.#find(KINDS[change.entity], change.id)
    if (row === 0) return NOWHERE
    const { credentials, customers, products, rules } = this.#store
    switch (change.entity) {
      case 'credential':
        return credentials.region.get(row * ROW_WORDS + CREDENTIAL_STATE) >>> CREDENTIAL_ORGANIZATION_SHIFT
      case 'customer':
        return customers.region.get(row * CUSTOMER_WORDS + CUSTOMER_ORGANIZATION)
      case 'product':
        return products.region.get(row * ROW_WORDS + PRODUCT_ORGANIZATION)
      case 'license':
        return this.#organizationOfLicense(row)
      case 'rule':
        return rules.region.get(row * ROW_WORDS + RULE_ORGANIZATION)
      default:
        return change satisfies never
    }
  }

  /**
   * Returns the one license that a change concerns, in the form of `nameOf`. Returns null for a rule whose scope is not a license or
   * changes, and for any entity other than license, machine and rule.
   */
  licenseOf(change: Change): string | null {
    if (change.entity === 'machine') return nameOf(change.licenseId)
    if (change.entity === 'license') return nameOf(change.id)
    if (change.entity !== 'rule') return null
    const after = change.row === null ? undefined : this.#licenseOfScope(change.row.scope, change.row.scopeId)
    const row = this.#find(KIND_RULE, change.id)
    const before = row === 0 ? undefined : this.#licenseOfRule(row)
    if (after === undefined) return before ?? null
    return before === undefined || before === after ? after : null
  }

  #licenseOfScope(scope: string, scopeId: Id | null): string | null {
    return scope === 'LICENSE' && scopeId !== null ? nameOf(scopeId) : null
  }

  /** Returns the license of a rule, or null when the rule has another scope or its license was removed. */
  #licenseOfRule(rule: number): string | null {
    const { licenses, rules, scopes } = this.#store
    const scope = rules.region.get(rule * ROW_WORDS + RULE_SCOPE) * ROW_WORDS
    const owner = scopes.region.get(scope + SCOPE_OWNER)
    if (owner === 0 || scopes.region.get(scope + SCOPE_OWNER_KIND) !== KIND_LICENSE) return null
    const id = new Uint8Array(16)
    writeBytes(licenses.region, owner * ROW_WORDS + ID, 4, id)
    return nameOf(id)
  }

  #organizationOfLicense(license: number): number {
    const { licenses, products } = this.#store
    const product = licenses.region.get(license * ROW_WORDS + LICENSE_PRODUCT)
    return products.region.get(product * ROW_WORDS + PRODUCT_ORGANIZATION)
  }

  #organizationWithId(id: Id): number {
    const row = this.#find(KIND_ORGANIZATION, id)
    if (row !== 0) return row
    const name = nameOf(id)
    const known = this.#newOrganizations.get(name)
    if (known !== undefined) return known
    const fresh = -1 - this.#newOrganizations.size
    this.#newOrganizations.set(name, fresh)
    return fresh
  }

  #find(kind: number, id: Id): number {
    return this.#store.lookup.findId(kind, id)
  }
}
