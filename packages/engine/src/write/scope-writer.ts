/**
 * Creates and frees scope records: one for each organization, product or license that is the scope of a rule. The record is created with
 * the first rule and freed with the last. Rules refer to the record by its row. The rules of a deleted license therefore stay in a record
 * without an owner, where they match nothing, until their own deletion arrives.
 */

import type { IndexStore } from '../memory/index-store.ts'
import {
  KIND_LICENSE,
  KIND_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  ORGANIZATION_SCOPE,
  PRODUCT_SCOPE,
  ROW_WORDS,
  SCOPE_COUNTS,
  SCOPE_OWNER,
  SCOPE_OWNER_KIND,
  SCOPE_RULES,
  TYPE_HWID,
} from '../memory/layout.ts'

export class ScopeWriter {
  readonly #store: IndexStore

  constructor(store: IndexStore) {
    this.#store = store
  }

  /** Returns the row of the scope record of an organization, product or license, or 0 when no rule has this scope. */
  find(kind: number, owner: number): number {
    if (kind === KIND_LICENSE) {
      return this.#store.licenses.region.get(owner * ROW_WORDS + LICENSE_STATE) >>> LICENSE_SCOPE_SHIFT
    }
    const { organizations, products } = this.#store
    if (kind === KIND_PRODUCT) return products.region.get(owner * ROW_WORDS + PRODUCT_SCOPE)
    return organizations.region.get(owner * ROW_WORDS + ORGANIZATION_SCOPE)
  }

  /** Returns the same row as `find`, and creates the record if there is none. */
  findOrCreate(kind: number, owner: number): number {
    const known = this.find(kind, owner)
    if (known !== 0) return known
    const scope = this.#store.scopes.allocate()
    const words = this.#store.scopes.region
    words.set(scope * ROW_WORDS + SCOPE_OWNER_KIND, kind)
    words.set(scope * ROW_WORDS + SCOPE_OWNER, owner)
    this.#assign(kind, owner, scope)
    return scope
  }

  /** Adds `by` to the count of the type's rules and to the count of all rules. Frees the record with its last rule. */
  count(scope: number, type: number, by: 1 | -1): void {
    const words = this.#store.scopes.region
    const base = scope * ROW_WORDS
    if (type >= TYPE_HWID) words.add(base + SCOPE_COUNTS + type - TYPE_HWID, by)
    words.add(base + SCOPE_RULES, by)
    if (words.get(base + SCOPE_RULES) !== 0) return
    const owner = words.get(base + SCOPE_OWNER)
    if (owner !== 0) this.#assign(words.get(base + SCOPE_OWNER_KIND), owner, 0)
    this.#store.scopes.free(scope)
  }

  /** Detaches the record from its owner, before the owner is removed. */
  abandon(kind: number, owner: number): void {
    const scope = this.find(kind, owner)
    if (scope !== 0) this.#store.scopes.region.set(scope * ROW_WORDS + SCOPE_OWNER, 0)
  }

  #assign(kind: number, owner: number, scope: number): void {
    const { licenses, organizations, products } = this.#store
    if (kind === KIND_LICENSE) {
      const words = licenses.region
      const at = owner * ROW_WORDS + LICENSE_STATE
      words.set(at, (words.get(at) & ((1 << LICENSE_SCOPE_SHIFT) - 1)) | (scope << LICENSE_SCOPE_SHIFT))
    } else if (kind === KIND_PRODUCT) {
      products.region.set(owner * ROW_WORDS + PRODUCT_SCOPE, scope)
    } else {
      organizations.region.set(owner * ROW_WORDS + ORGANIZATION_SCOPE, scope)
    }
  }
}
