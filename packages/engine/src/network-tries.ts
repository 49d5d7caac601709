/**
 * The tries of all scopes: which network hangs in which, and finding all that cover an address. Most networks are long,
 * single addresses above all, and in one trie for a large scope they would be many steps deep, each a wait for memory. So
 * those of at least 24 bits (64 of IPv6) hang in the trie of their stem, their first 24 (64) bits, which is found by hash
 * and mostly is the one rule. The others hang in a trie at the scope's own root.
 *
 * A table's entry is the hash of scope and stem, and the root of a trie. Stems of one scope that have the same hash share
 * an entry and its trie, those of several scopes have one each; a search follows them all, since rules name their scope and
 * hold their network.
 */
import { NONE } from './bucket-table.ts'
import type { IndexStore } from './index-store.ts'
import { type AddressWords, findCovers, MAX_COVERS } from './prefix-trie.ts'
import { ROW_WORDS, SCOPE_ROOT4, SCOPE_ROOT6, SCOPE_STEMS, TYPE_IP4 } from './records.ts'
import { hashPair, scramble } from './words.ts'

/** An address is covered by at most 129 networks of a scope, one for each prefix length; torn memory may have more. */
export const MAX_NETWORKS = 4 * MAX_COVERS

const TYPE_SHIFT = 31
const HASH_MASK = 0x7fffffff

export class NetworkTries {
  private readonly store: IndexStore
  private readonly seed: number

  constructor(store: IndexStore) {
    this.store = store
    this.seed = store.memory.shared.hashKey[1]! ^ store.memory.shared.hashKey[3]!
  }

  /**
   * Finds all networks of a scope that cover an address: writes the first rule of each into `out` (MAX_NETWORKS long) and
   * gives their number, the shortest prefix first. `type`: the address's, TYPE_IP4 or TYPE_IP6.
   */
  find(scope: number, type: number, address: AddressWords, out: Int32Array): number {
    const { byStem, scopes } = this.store
    const { words } = scopes.region
    const nodes = this.store.trieNodes.region.words
    const rules = this.store.rules.region.words
    const root = words[rootOf(scope, type)]!
    let count = root === 0 ? 0 : findCovers(nodes, rules, root, scope, address, out, 0)
    if (words[stemCountOf(scope, type)] === 0) return count
    const hash = this.stemHash(scope, type, address.a0, address.a1)
    for (let at = byStem.first(hash); at !== NONE; at = byStem.next(hash, at)) {
      if (count > MAX_NETWORKS - MAX_COVERS) break
      count = findCovers(nodes, rules, byStem.word(at, 1), scope, address, out, count)
    }
    return count
  }

  /** Begins to fetch the entry of an address's stem; gives nothing of meaning. */
  touch(scope: number, type: number, address: AddressWords): number {
    if (this.store.scopes.region.words[stemCountOf(scope, type)] === 0) return 0
    return this.store.byStem.touch(this.stemHash(scope, type, address.a0, address.a1))
  }

  /** The hash of the stem that an address or a network begins with; its upper bit tells the families apart. */
  stemHash(scope: number, type: number, a0: number, a1: number): number {
    const stem = type === TYPE_IP4 ? a0 >>> 8 : scramble(a0 ^ this.seed) ^ a1
    return (hashPair(stem, scope, this.seed) & HASH_MASK) | (type << TYPE_SHIFT)
  }
}

/** Whether a network is long enough to hang at a stem. */
export function hasStem(type: number, prefixLength: number): boolean {
  return prefixLength >= (type === TYPE_IP4 ? 24 : 64)
}

/** Where the root for the networks without a stem stands among the scopes' words. */
export function rootOf(scope: number, type: number): number {
  return scope * ROW_WORDS + (type === TYPE_IP4 ? SCOPE_ROOT4 : SCOPE_ROOT6)
}

/** Where the number of a scope's rules at stems stands among the scopes' words. */
export function stemCountOf(scope: number, type: number): number {
  return scope * ROW_WORDS + SCOPE_STEMS + type
}
