/**
 * Whether changes find room in the index. It is asked before a write section opens, so that nothing inside one can fail
 * half-way. A full index takes no further rows, but all that concerns the rows it has: a revocation needs no room.
 */
import type { IndexStore } from '../memory/index-store.ts'
import type { Change } from '../model.ts'

type Counts = Record<Change['entity'], number>

export class Room {
  private readonly store: IndexStore
  private readonly takesRow: (change: Change) => boolean

  /** `takesRow`: whether writing the change needs a row more than there are. */
  constructor(store: IndexStore, takesRow: (change: Change) => boolean) {
    this.store = store
    this.takesRow = takesRow
  }

  /** Those of the changes that there is room for; `onFull` is told of the others. */
  fitting(changes: readonly Change[], onFull: (change: Change) => void): readonly Change[] {
    const fresh = noCounts()
    for (const change of changes) if (writes(change)) fresh[change.entity]++
    if (this.holds(fresh, fresh)) return changes
    return this.select(changes, onFull)
  }

  /** Asks of each change alone what it needs: dear, and only done where the index is all but full. */
  private select(changes: readonly Change[], onFull: (change: Change) => void): readonly Change[] {
    const fresh = noCounts()
    const written = noCounts()
    return changes.filter((change) => {
      if (!writes(change)) return true
      const rows = this.takesRow(change) ? 1 : 0
      fresh[change.entity] += rows
      written[change.entity]++
      if (this.holds(fresh, written)) return true
      fresh[change.entity] -= rows
      written[change.entity]--
      onFull(change)
      return false
    })
  }

  /** At worst, what is written anew finds its old places in the tables and the trie taken by what was written before it. */
  private holds(fresh: Counts, written: Counts): boolean {
    const { store } = this
    const ids = fresh.organization + fresh.credential + fresh.product + fresh.customer + fresh.license + fresh.rule
    return (
      store.organizations.hasRoom(fresh.organization) &&
      store.credentials.hasRoom(fresh.credential) &&
      store.products.hasRoom(fresh.product) &&
      store.customers.hasRoom(fresh.customer) &&
      store.licenses.hasRoom(fresh.license) &&
      store.rules.hasRoom(fresh.rule) &&
      store.scopes.hasRoom(written.rule) &&
      store.trieNodes.hasRoom(written.rule) &&
      store.byId.hasRoom(ids) &&
      store.byKey.hasRoom(written.credential + written.license) &&
      store.byRule.hasRoom(written.rule) &&
      store.machines.table.hasRoom(fresh.machine)
    )
  }
}

function noCounts(): Counts {
  return { organization: 0, credential: 0, product: 0, customer: 0, license: 0, rule: 0, machine: 0 }
}

function writes(change: Change): boolean {
  return change.entity === 'machine' ? change.held : change.row !== null
}
