/**
 * Determines whether changes fit into the index. The writer checks this before it opens a write section, so that no
 * section fails half-way. A full index rejects new rows but accepts every change of an existing row, such as a
 * revocation. License extensions are not counted here, because `extension-writer.ts` omits an extension that does not
 * fit.
 */

import type { IndexStore } from '../memory/index-store.ts'
import type { Change } from '../model.ts'

/** The reason for the rejection of a row that does not fit into the index. */
export const INDEX_IS_FULL = 'the index is full'

type Counts = Record<Change['entity'], number>

export class Capacity {
  readonly #store: IndexStore

  constructor(store: IndexStore) {
    this.#store = store
  }

  /** Returns the changes that fit, and calls `onFull` for each other change. `takesRow` returns whether a change needs a new row. */
  select(
    changes: readonly Change[],
    takesRow: (change: Change) => boolean,
    onFull: (change: Change) => void,
  ): readonly Change[] {
    const fresh = noCounts()
    for (const change of changes) if (writes(change)) fresh[change.entity]++
    if (this.#fits(fresh, fresh)) return changes
    return this.#selectEach(changes, takesRow, onFull)
  }

  /** Tests for each change whether it still fits. This is slow, so `select` calls it only when the index is nearly full. */
  #selectEach(
    changes: readonly Change[],
    takesRow: (change: Change) => boolean,
    onFull: (change: Change) => void,
  ): readonly Change[] {
    const fresh = noCounts()
    const written = noCounts()
    return changes.filter((change) => {
      if (!writes(change)) return true
      const rows = takesRow(change) ? 1 : 0
      fresh[change.entity] += rows
      written[change.entity]++
      if (this.#fits(fresh, written)) return true
      fresh[change.entity] -= rows
      written[change.entity]--
      onFull(change)
      return false
    })
  }

  /**
   * Returns whether the index has capacity for `fresh` new rows and for writing `written` rows. Writing an existing row may need a new
   * entry in a table or trie, because a row that was written earlier may have taken the former entry.
   */
  #fits(fresh: Counts, written: Counts): boolean {
    const store = this.#store
    const ids = fresh.organization + fresh.credential + fresh.product + fresh.customer + fresh.license + fresh.rule
    return (
      store.organizations.hasCapacity(fresh.organization) &&
      store.credentials.hasCapacity(fresh.credential) &&
      store.products.hasCapacity(fresh.product) &&
      store.customers.hasCapacity(fresh.customer) &&
      store.licenses.hasCapacity(fresh.license) &&
      store.rules.hasCapacity(fresh.rule) &&
      store.scopes.hasCapacity(written.rule) &&
      store.nodes.hasCapacity(written.rule) &&
      store.byId.hasCapacity(ids) &&
      store.byKey.hasCapacity(written.credential + written.license) &&
      store.byRule.hasCapacity(written.rule) &&
      store.machines.table.hasCapacity(fresh.machine)
    )
  }
}

function noCounts(): Counts {
  return { organization: 0, credential: 0, product: 0, customer: 0, license: 0, rule: 0, machine: 0 }
}

function writes(change: Change): boolean {
  return change.entity === 'machine' ? change.held : change.row !== null
}
