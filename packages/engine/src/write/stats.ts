import type { IndexStore } from '../memory/index-store.ts'
import { REGION_NAMES } from '../memory/shared-memory.ts'
import type { Change } from '../model.ts'

export interface IndexStats {
  rows: Record<Change['entity'] | 'extension' | 'value' | 'scope' | 'trieNode', number>
  /** Bytes in use, by slab and table. */
  bytes: Record<string, number>
  /** Bytes in use, in total. */
  usedBytes: number
  /** Reserved address space, in bytes. The system provides memory only for the part in use. */
  reservedBytes: number
}

/** Counts the rows and the bytes of an index. */
export function statsOf(store: IndexStore): IndexStats {
  const bytes: Record<string, number> = {
    organizations: store.organizations.usedBytes,
    credentials: store.credentials.usedBytes,
    products: store.products.usedBytes,
    customers: store.customers.usedBytes,
    licenses: store.licenses.usedBytes,
    extensions: store.extensions.usedBytes,
    values: store.values.slab.usedBytes,
    scopes: store.scopes.usedBytes,
    rules: store.rules.usedBytes,
    trieNodes: store.nodes.usedBytes,
    byId: store.byId.usedBytes,
    byKey: store.byKey.usedBytes,
    byRule: store.byRule.usedBytes,
    byValue: store.values.table.usedBytes,
    machines: store.machines.table.usedBytes,
  }
  return {
    rows: {
      organization: store.organizations.live,
      credential: store.credentials.live,
      product: store.products.live,
      customer: store.customers.live,
      license: store.licenses.live,
      extension: store.extensions.live,
      value: store.values.table.entries,
      machine: store.machines.table.entries,
      rule: store.rules.live,
      scope: store.scopes.live,
      trieNode: store.nodes.live,
    },
    bytes,
    usedBytes: Object.values(bytes).reduce((sum, part) => sum + part, 0),
    reservedBytes: REGION_NAMES.reduce((sum, name) => sum + store.memory.regions[name].byteLength, 0),
  }
}
