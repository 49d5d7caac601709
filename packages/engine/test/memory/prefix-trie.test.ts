import { expect, test } from 'vitest'

import type { Network } from '../../src/index.ts'
import { openStore } from '../../src/memory/index-store.ts'
import {
  NODE_WORDS,
  ROW_WORDS,
  RULE_NEXT,
  RULE_PREFIX_SHIFT,
  RULE_TRAITS,
  RULE_TYPE_SHIFT,
  RULE_VALUE,
  TYPE_IP4,
  TYPE_IP6,
} from '../../src/memory/layout.ts'
import { findCovers, MAX_COVERS } from '../../src/memory/prefix-trie.ts'
import { createShared, SharedRegion } from '../../src/memory/shared-memory.ts'
import { TrieWriter } from '../../src/write/trie-writer.ts'
import { randomNetwork } from '../support/history.ts'
import { bitsOf, contains } from '../support/naive.ts'
import { random, type Random } from '../support/random.ts'
import { worlds } from '../support/worlds.ts'

/** A trie, and a plain list of the networks in it. */
class Pair {
  readonly store = openStore(createShared([1, 2, 3, 4], 'small'))
  readonly writer = new TrieWriter(this.store.nodes, this.store.rules.region)
  readonly root = new SharedRegion(new SharedArrayBuffer(8), 0)
  readonly networks = new Map<number, Network>()

  add(network: Network): number {
    const row = this.store.rules.allocate()
    const { words } = this.store.rules.region
    for (const [i, word] of network.words.entries()) words[row * ROW_WORDS + RULE_VALUE + i] = word
    const type = network.family === 4 ? TYPE_IP4 : TYPE_IP6
    words[row * ROW_WORDS + RULE_TRAITS] = (network.prefixLength << RULE_PREFIX_SHIFT) | (type << RULE_TYPE_SHIFT)
    this.writer.insert(this.root, 0, row)
    this.networks.set(row, network)
    return row
  }

  remove(row: number): void {
    this.writer.remove(this.root, 0, row)
    this.store.rules.free(row)
    this.networks.delete(row)
  }

  found(address: Network): number[] {
    const out = new Int32Array(MAX_COVERS)
    const { words } = this.store.rules.region
    const [a0 = 0, a1 = 0, a2 = 0, a3 = 0] = address.words.map((word) => word | 0)
    const count = findCovers(this.store.nodes.region.words, words, this.root.get(0), a0, a1, a2, a3, out)
    const rows: number[] = []
    for (const first of out.subarray(0, count)) {
      for (let row = first; row !== 0; row = words[row * ROW_WORDS + RULE_NEXT]!) rows.push(row)
    }
    return rows.toSorted((a, b) => a - b)
  }

  naive(address: Network): number[] {
    return [...this.networks.keys()]
      .filter((row) => contains(this.networks.get(row)!, address))
      .toSorted((a, b) => a - b)
  }
}

function anyNetwork(r: Random, family: 4 | 6, whole: boolean): Network {
  for (;;) {
    const network = randomNetwork(r, whole)
    if (network.family === family) return network
  }
}

/** Returns an address of a network, with random bits after the prefix. */
function inside(r: Random, network: Network): Network {
  const bits = network.family === 4 ? 32 : 128
  const text = bitsOf(network).slice(0, network.prefixLength) + Array.from({ length: bits }, () => r.int(2)).join('')
  return fromBits(text.slice(0, bits), network.family, bits)
}

function fromBits(text: string, family: 4 | 6, prefixLength: number): Network {
  const word = (at: number): number => Number.parseInt(text.slice(32 * at, 32 * at + 32).padEnd(32, '0'), 2)
  return family === 4
    ? { family, words: [word(0)], prefixLength }
    : { family, words: [word(0), word(1), word(2), word(3)], prefixLength }
}

test.each([4, 6] as const)(
  'a trie over IPv%i finds the same prefixes as a scan after random insertions and removals',
  (family) => {
    for (let seed = 1; seed <= worlds(20, 60); seed++) {
      const r = random(seed)
      const pair = new Pair()
      for (let i = 0; i < 300; i++) {
        const rows = [...pair.networks.keys()]
        if (rows.length === 0 || r.chance(i < 200 ? 0.75 : 0.2)) pair.add(anyNetwork(r, family, false))
        else pair.remove(r.pick(rows))
        if (i % 3 > 0 || pair.networks.size === 0) continue
        const address = r.chance(0.5) ? anyNetwork(r, family, true) : inside(r, r.pick([...pair.networks.values()]))
        expect(pair.found(address), `seed ${seed}, step ${i}`).toEqual(pair.naive(address))
      }
      for (const row of pair.networks.keys()) pair.remove(row)
      expect(pair.root.get(0)).toBe(0)
      expect(pair.store.nodes.live).toBe(0)
    }
  },
)

test.each([4, 6] as const)('finds all prefix lengths of one IPv%i address, the shortest first', (family) => {
  const r = random(11)
  const bits = family === 4 ? 32 : 128
  const address = anyNetwork(r, family, true)
  const pair = new Pair()
  const lengths = Array.from({ length: bits + 1 }, (_, length) => length)
  const rows = new Map(
    r.shuffle(lengths).map((length) => [length, pair.add(fromBits(bitsOf(address).slice(0, length), family, length))]),
  )
  const out = new Int32Array(MAX_COVERS)
  const [a0 = 0, a1 = 0, a2 = 0, a3 = 0] = address.words.map((word) => word | 0)
  const { nodes, rules } = pair.store
  const count = findCovers(nodes.region.words, rules.region.words, pair.root.get(0), a0, a1, a2, a3, out)
  expect([...out.subarray(0, count)]).toEqual(lengths.map((length) => rows.get(length)))
  for (const length of lengths) {
    if (length % 2 === 0) pair.remove(rows.get(length)!)
  }
  expect(pair.found(address)).toEqual(pair.naive(address))
  expect(pair.found(address)).toHaveLength(bits / 2)
})

test('has fewer nodes than networks', () => {
  const r = random(2)
  const pair = new Pair()
  for (let i = 0; i < 5000; i++) {
    pair.add(fromBits(Array.from({ length: 32 }, () => r.int(2)).join(''), 4, 32))
  }
  expect(pair.store.nodes.live).toBeLessThan(pair.networks.size)
  expect(pair.store.nodes.usedBytes).toBe(4 * NODE_WORDS * (pair.store.nodes.highest + 1))
})
