/**
 * The tries of all scopes: which network hangs in which, and finding all that cover an address. A trie for all networks of
 * a large scope would be many steps deep, each a wait for memory. So its networks hang in many: those of less than 16 bits
 * (48 of IPv6) in a trie at the scope's own root, the others each in the trie of their stem, which is found by hash. A stem
 * is the first 16 bits of a network, or the first 24 where it has as many (48 and 64 of IPv6).
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

// The kinds of stems, two for each family: how long they are, and how far their last word is shifted for it.
const STEM_LENGTHS = [16, 24, 48, 64]
const STEM_SHIFTS = [16, 8, 16, 0]
const STEMS_EACH = 2
const KIND_SHIFT = 30
const KIND_MASK = (1 << KIND_SHIFT) - 1
/** No stem: the network hangs at the scope's root. */
export const NO_STEM = -1

export class NetworkTries {
  private readonly store: IndexStore
  private readonly seed: number

  constructor(store: IndexStore) {
    this.store = store
    this.seed = store.memory.shared.hashKey[1]! ^ store.memory.shared.hashKey[3]!
  }

  /**
   * Finds all networks of a scope that cover an address: writes the first rule of each into `out` (MAX_NETWORKS long) and
   * gives their number, the shortest prefix first.
   */
  find(scope: number, type: number, address: AddressWords, out: Int32Array): number {
    const { byStem, scopes } = this.store
    const { words } = scopes.region
    const nodes = this.store.trieNodes.region.words
    const rules = this.store.rules.region.words
    const root = words[rootOf(scope, type)]!
    let count = root === 0 ? 0 : findCovers(nodes, rules, root, scope, address, out, 0)
    for (let stem = firstStem(type); stem < firstStem(type) + STEMS_EACH; stem++) {
      if (words[stemCountOf(scope, stem)] === 0) continue
      const hash = this.stemHash(scope, stem, address.a0, address.a1)
      for (let at = byStem.first(hash); at !== NONE; at = byStem.next(hash, at)) {
        if (count > MAX_NETWORKS - MAX_COVERS) return count
        count = findCovers(nodes, rules, byStem.word(at, 1), scope, address, out, count)
      }
    }
    return count
  }

  /** Begins to fetch the entries of an address's stems; gives nothing of meaning. */
  touch(scope: number, type: number, address: AddressWords): number {
    const { words } = this.store.scopes.region
    let touched = 0
    for (let stem = firstStem(type); stem < firstStem(type) + STEMS_EACH; stem++) {
      if (words[stemCountOf(scope, stem)] === 0) continue
      touched ^= this.store.byStem.touch(this.stemHash(scope, stem, address.a0, address.a1))
    }
    return touched
  }

  /**
   * The hash of the stem of this kind that an address or a network begins with. Its two upper bits are the kind: stems of
   * different kinds may both hold an address, and what hangs at one must not be found again at the other.
   */
  stemHash(scope: number, stem: number, a0: number, a1: number): number {
    const shift = STEM_SHIFTS[stem]!
    const bits = stem < STEMS_EACH ? a0 >>> shift : scramble(a0 ^ this.seed) + (a1 >>> shift)
    return (hashPair(bits, scope, this.seed) & KIND_MASK) | (stem << KIND_SHIFT)
  }
}

/** The kind of stem at which a network hangs, or NO_STEM. */
export function stemOf(type: number, prefixLength: number): number {
  const first = firstStem(type)
  if (prefixLength < STEM_LENGTHS[first]!) return NO_STEM
  return prefixLength < STEM_LENGTHS[first + 1]! ? first : first + 1
}

/** Where the root for the networks without a stem stands among the scopes' words. */
export function rootOf(scope: number, type: number): number {
  return scope * ROW_WORDS + (type === TYPE_IP4 ? SCOPE_ROOT4 : SCOPE_ROOT6)
}

/** Where the number of a scope's rules at stems of a kind stands among the scopes' words. */
export function stemCountOf(scope: number, stem: number): number {
  return scope * ROW_WORDS + SCOPE_STEMS + stem
}

function firstStem(type: number): number {
  return type === TYPE_IP4 ? 0 : STEMS_EACH
}
