import { KeyedHash } from './keyed-hash.ts'
import { CUSTOMER_WORDS, ROW_WORDS } from './layout.ts'
import { BucketTable } from './linear-hash-table.ts'
import { Directory, type DirectoryParts } from './lookup.ts'
import { MachineSet } from './machine-set.ts'
import { NODE_WORDS } from './prefix-trie.ts'
import { headerOf, Memory, type RegionName, type SharedIndex } from './shared-memory.ts'
/**
 * An index as one thread holds it: the memory and the structures over it. Readers only look things up; the writer's
 * parts work on the same object.
 */
import { Arena } from './slab.ts'

export class IndexStore implements DirectoryParts {
  readonly memory: Memory
  readonly hash: KeyedHash
  readonly organizations: Arena
  readonly credentials: Arena
  readonly products: Arena
  readonly customers: Arena
  readonly licenses: Arena
  readonly scopes: Arena
  readonly rules: Arena
  readonly trieNodes: Arena
  readonly byId: BucketTable
  readonly byKey: BucketTable
  readonly byRule: BucketTable
  readonly machines: MachineSet
  readonly directory: Directory

  constructor(shared: SharedIndex) {
    this.memory = new Memory(shared)
    this.hash = new KeyedHash(shared.hashKey)
    this.organizations = this.arena('organizations', ROW_WORDS)
    this.credentials = this.arena('credentials', ROW_WORDS)
    this.products = this.arena('products', ROW_WORDS)
    this.customers = this.arena('customers', CUSTOMER_WORDS)
    this.licenses = this.arena('licenses', ROW_WORDS)
    this.scopes = this.arena('scopes', ROW_WORDS)
    this.rules = this.arena('rules', ROW_WORDS)
    this.trieNodes = this.arena('trieNodes', NODE_WORDS)
    // Fuller tables take less memory and more steps. The first is read by the writer alone, so it may be the fullest;
    // bytes per entry come to about 13, 14 and 19.
    this.byId = this.table('byId', 'byIdOverflow', 2, 7)
    this.byKey = this.table('byKey', 'byKeyOverflow', 2, 6)
    this.byRule = this.table('byRule', 'byRuleOverflow', 2, 4)
    this.machines = new MachineSet(this.table('machines', 'machinesOverflow', 3, 4.4))
    this.directory = new Directory(this)
  }

  private arena(name: RegionName, rowWords: number): Arena {
    return new Arena(this.memory.regions[name], this.memory.control, headerOf(name), rowWords)
  }

  private table(primary: RegionName, overflow: RegionName, entryWords: 2 | 3, fill: number): BucketTable {
    const { regions, control } = this.memory
    return new BucketTable({
      primary: regions[primary],
      overflow: regions[overflow],
      control,
      header: headerOf(primary),
      entryWords,
      fill,
    })
  }
}
