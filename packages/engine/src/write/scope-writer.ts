/**
 * Scope records: what an organization, a product or a license has of rules of its own. The record is made with the
 * first rule and freed with the last; its row number keys the rules, so rules left behind by a deleted license hang on
 * a record that nothing points at, and harm nobody until their own deletion arrives.
 */
import type { IndexStore } from '../memory/index-store.ts'
import {
  KIND_LICENSE,
  KIND_PRODUCT,
  LICENSE_SCOPE_SHIFT,
  LICENSE_STATE,
  ROW_WORDS,
  SCOPE_COUNTS,
  SCOPE_OWNER,
  SCOPE_OWNER_KIND,
  SCOPE_RULES,
  TENANT_SCOPE,
} from '../memory/layout.ts'

export class ScopeWriter {
  private readonly store: IndexStore

  constructor(store: IndexStore) {
    this.store = store
  }

  /** The scope record of an organization, product or license, 0 when it has no rules. */
  find(kind: number, owner: number): number {
    if (kind === KIND_LICENSE) {
      return this.store.licenses.region.words[owner * ROW_WORDS + LICENSE_STATE]! >>> LICENSE_SCOPE_SHIFT
    }
    const arena = kind === KIND_PRODUCT ? this.store.products : this.store.organizations
    return arena.region.words[owner * ROW_WORDS + TENANT_SCOPE]!
  }

  findOrCreate(kind: number, owner: number): number {
    const known = this.find(kind, owner)
    if (known !== 0) return known
    const scope = this.store.scopes.allocate()
    const { words } = this.store.scopes.region
    words[scope * ROW_WORDS + SCOPE_OWNER_KIND] = kind
    words[scope * ROW_WORDS + SCOPE_OWNER] = owner
    this.assign(kind, owner, scope)
    return scope
  }

  /** Counts a rule in (1) or out (-1); the last one out frees the record. */
  count(scope: number, type: number, by: 1 | -1): void {
    const { words } = this.store.scopes.region
    const base = scope * ROW_WORDS
    words[base + SCOPE_COUNTS + type]! += by
    words[base + SCOPE_RULES]! += by
    if (words[base + SCOPE_RULES] !== 0) return
    const owner = words[base + SCOPE_OWNER]!
    if (owner !== 0) this.assign(words[base + SCOPE_OWNER_KIND]!, owner, 0)
    this.store.scopes.free(scope)
  }

  /** The owner is going. */
  abandon(kind: number, owner: number): void {
    const scope = this.find(kind, owner)
    if (scope !== 0) this.store.scopes.region.words[scope * ROW_WORDS + SCOPE_OWNER] = 0
  }

  private assign(kind: number, owner: number, scope: number): void {
    if (kind === KIND_LICENSE) {
      const { words } = this.store.licenses.region
      const at = owner * ROW_WORDS + LICENSE_STATE
      words[at] = (words[at]! & ((1 << LICENSE_SCOPE_SHIFT) - 1)) | (scope << LICENSE_SCOPE_SHIFT)
      return
    }
    const arena = kind === KIND_PRODUCT ? this.store.products : this.store.organizations
    arena.region.words[owner * ROW_WORDS + TENANT_SCOPE] = scope
  }
}
