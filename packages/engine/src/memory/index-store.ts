/**
 * One thread's view of an index: the shared memory, and the slabs, tables and lookups over it. Reader threads only read
 * these structures, and the writer's thread also changes them.
 */

import { KeyedHash } from './keyed-hash.ts'
import { CUSTOMER_WORDS, EXTENSION_WORDS, NODE_WORDS, ROW_WORDS } from './layout.ts'
import { LinearHashTable } from './linear-hash-table.ts'
import { Lookup, type LookupParts } from './lookup.ts'
import { MachineSet } from './machine-set.ts'
import {
  headerOf,
  Memory,
  type Region,
  type RegionName,
  type SharedIndex,
  type SharedRegion,
  shapeOf,
} from './shared-memory.ts'
import { Slab } from './slab.ts'
import { ValueSet } from './value-set.ts'

export class IndexStore<View extends Region = Region> implements LookupParts<View> {
  readonly memory: Memory<View>
  readonly hash: KeyedHash
  readonly organizations: Slab<View>
  readonly credentials: Slab<View>
  readonly products: Slab<View>
  readonly customers: Slab<View>
  readonly licenses: Slab<View>
  readonly extensions: Slab<View>
  readonly scopes: Slab<View>
  readonly rules: Slab<View>
  readonly nodes: Slab<View>
  readonly byId: LinearHashTable
  readonly byKey: LinearHashTable
  readonly byRule: LinearHashTable
  readonly machines: MachineSet
  readonly values: ValueSet
  readonly lookup: Lookup<View>
  /** All hash tables. Each occupies two regions. */
  readonly #tables: LinearHashTable[] = []
  /** Functions that return the number of bytes in use, by region. */
  readonly #usedBytes = new Map<RegionName, () => number>()

  /** `view` returns the thread's view of a part of the memory (`Memory`). */
  constructor(shared: SharedIndex, view: (part: SharedRegion, number: number) => View) {
    this.memory = new Memory(shared, view)
    this.hash = new KeyedHash(shared.hashKey)
    this.organizations = this.#slab('organizations', ROW_WORDS)
    this.credentials = this.#slab('credentials', ROW_WORDS)
    this.products = this.#slab('products', ROW_WORDS)
    this.customers = this.#slab('customers', CUSTOMER_WORDS)
    this.licenses = this.#slab('licenses', ROW_WORDS)
    this.extensions = this.#slab('extensions', EXTENSION_WORDS)
    this.scopes = this.#slab('scopes', ROW_WORDS)
    this.rules = this.#slab('rules', ROW_WORDS)
    this.nodes = this.#slab('trieNodes', NODE_WORDS)
    // A fuller table needs less memory and more steps per search. `byId` has full buckets because no check reads it. The tables `byId`,
    // `byKey` and `byRule` need about 13, 14 and 19 bytes per entry.
    this.byId = this.#table('byId', 'byIdOverflow', 2, 7)
    this.byKey = this.#table('byKey', 'byKeyOverflow', 2, 6)
    this.byRule = this.#table('byRule', 'byRuleOverflow', 2, 4)
    this.machines = new MachineSet(this.#table('machines', 'machinesOverflow', 3, 4.4))
    // No check reads this table either.
    const byValue = this.#table('byValue', 'byValueOverflow', 2, 7)
    this.values = new ValueSet(this.#slab('values', ROW_WORDS), byValue, this.hash)
    this.lookup = new Lookup(this)
  }

  /** Initializes the tables of a new, empty index. */
  initialize(): void {
    for (const table of this.#tables) table.initialize()
  }

  /** Returns the number of bytes in use, counted from the start of a region. All bytes after them are 0. */
  usedBytes(name: RegionName): number {
    return this.#usedBytes.get(name)!()
  }

  #slab(name: RegionName, rowWords: number): Slab<View> {
    const slab = new Slab(this.memory.regions[name], this.memory.control, headerOf(name), rowWords)
    this.#usedBytes.set(name, () => slab.usedBytes)
    return slab
  }

  #table(primary: RegionName, overflow: RegionName, entryWords: 2 | 3, fill: number): LinearHashTable {
    const { regions, control, shapes } = this.memory
    const table = new LinearHashTable({
      primary: regions[primary],
      overflow: regions[overflow],
      control,
      header: headerOf(primary),
      shapes,
      shape: shapeOf(primary),
      entryWords,
      fill,
    })
    this.#tables.push(table)
    this.#usedBytes.set(primary, () => table.primaryBytes).set(overflow, () => table.overflowBytes)
    return table
  }
}

/** The store of a reader, whose hot path reads the words of the regions directly. */
export type ReadStore = IndexStore<SharedRegion>

export function openStore(shared: SharedIndex): ReadStore {
  return new IndexStore(shared, (part) => part)
}
