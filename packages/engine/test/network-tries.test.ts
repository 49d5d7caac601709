import { expect, test } from 'vitest'

import { IndexStore } from '../src/index-store.ts'
import type { Network } from '../src/index.ts'
import { NetworkTriesWriter } from '../src/network-tries-writer.ts'
import { MAX_NETWORKS } from '../src/network-tries.ts'
import {
  ROW_WORDS,
  RULE_NEXT,
  RULE_PREFIX_SHIFT,
  RULE_SCOPE,
  RULE_TRAITS,
  RULE_TYPE_SHIFT,
  RULE_VALUE,
  TYPE_IP4,
  TYPE_IP6,
} from '../src/records.ts'
import { createShared } from '../src/shared-memory.ts'
import { bitsOf, contains } from './support/naive.ts'
import { anyNetwork, fromBits, inside, wordsOf } from './support/networks.ts'
import { random } from './support/random.ts'

const SCOPES = 4

/** The tries of some scopes beside a plain list of the networks in them. */
class World {
  readonly store = new IndexStore(createShared([1, 2, 3, 4], 'small'))
  readonly writer = new NetworkTriesWriter(this.store)
  readonly rules = new Map<number, { scope: number; network: Network }>()
  readonly scopes: number[]

  constructor() {
    this.store.byStem.initialize()
    this.scopes = Array.from({ length: SCOPES }, () => this.store.scopes.allocate())
  }

  add(scope: number, network: Network): number {
    this.store.rules.reserve(1)
    this.store.trieNodes.reserve(1)
    this.store.byStem.reserve(1)
    const row = this.store.rules.allocate()
    const { words } = this.store.rules.region
    const base = row * ROW_WORDS
    for (const [i, word] of network.words.entries()) words[base + RULE_VALUE + i] = word
    words[base + RULE_SCOPE] = scope
    words[base + RULE_TRAITS] = (network.prefixLength << RULE_PREFIX_SHIFT) | (typeOf(network) << RULE_TYPE_SHIFT)
    this.writer.insert(row)
    this.rules.set(row, { scope, network })
    return row
  }

  remove(row: number): void {
    this.writer.remove(row)
    this.store.rules.free(row)
    this.rules.delete(row)
  }

  found(scope: number, address: Network): number[] {
    const out = new Int32Array(MAX_NETWORKS)
    const count = this.store.networks.find(scope, typeOf(address), wordsOf(address), out)
    const { words } = this.store.rules.region
    const rows: number[] = []
    for (const first of out.subarray(0, count)) {
      for (let row = first; row !== 0; row = words[row * ROW_WORDS + RULE_NEXT]!) rows.push(row)
    }
    return rows
  }

  naive(scope: number, address: Network): number[] {
    return [...this.rules].flatMap(([row, rule]) =>
      rule.scope === scope && contains(rule.network, address) ? [row] : [],
    )
  }
}

const typeOf = (network: Network): number => (network.family === 4 ? TYPE_IP4 : TYPE_IP6)
const ascending = (rows: readonly number[]): number[] => rows.toSorted((a, b) => a - b)

test.each([4, 6] as const)(
  'scopes with IPv%i networks find the same as a scan, under additions and removals',
  (family) => {
    for (let seed = 1; seed <= 40; seed++) {
      const r = random(seed)
      const world = new World()
      for (let i = 0; i < 400; i++) {
        const rows = [...world.rules.keys()]
        if (rows.length === 0 || r.chance(i < 250 ? 0.75 : 0.2))
          world.add(r.pick(world.scopes), anyNetwork(r, family, false))
        else world.remove(r.pick(rows))
        if (world.rules.size === 0) continue
        const near = inside(r, r.pick([...world.rules.values()]).network)
        for (const address of [near, anyNetwork(r, family, true)]) {
          const scope = r.pick(world.scopes)
          expect(ascending(world.found(scope, address)), `seed ${seed}, step ${i}`).toEqual(
            ascending(world.naive(scope, address)),
          )
        }
      }
      for (const row of world.rules.keys()) world.remove(row)
      const { trieNodes, byStem, scopes } = world.store
      expect([trieNodes.live, byStem.entries]).toEqual([0, 0])
      expect(scopes.region.words.subarray(0, (SCOPES + 1) * ROW_WORDS).every((word) => word === 0)).toBe(true)
    }
  },
)

test.each([4, 6] as const)('all prefix lengths of one IPv%i address cover it, the shortest first', (family) => {
  const r = random(12)
  const bits = family === 4 ? 32 : 128
  const world = new World()
  const [scope = 0, other = 0] = world.scopes
  const address = anyNetwork(r, family, true)
  const lengths = Array.from({ length: bits + 1 }, (_, length) => length)
  const rows = new Map(
    r.shuffle(lengths).map((length) => {
      const network = fromBits(bitsOf(address).slice(0, length), family, length)
      world.add(other, network)
      return [length, world.add(scope, network)]
    }),
  )
  expect(world.found(scope, address)).toEqual(lengths.map((length) => rows.get(length)))
})

test('two stems of a scope with one hash share a trie, and nothing else', () => {
  const world = new World()
  const [scope = 0] = world.scopes
  const stemOf = (a0: number, a1: number): number => world.store.networks.stemHash(scope, TYPE_IP6, a0, a1)
  const network = (a0: number, a1: number): Network => ({ family: 6, words: [a0, a1, 0, 0], prefixLength: 64 })
  const r = random(3)
  const byHash = new Map<number, [number, number]>()
  let pair: [number, number][] = []
  while (pair.length === 0) {
    const stem: [number, number] = [r.int(2 ** 32), r.int(2 ** 32)]
    const known = byHash.get(stemOf(...stem))
    if (known !== undefined) pair = [known, stem]
    byHash.set(stemOf(...stem), stem)
  }
  const [one = [0, 0], two = [0, 0]] = pair
  const [first, second] = [world.add(scope, network(...one)), world.add(scope, network(...two))]
  expect(world.store.byStem.entries).toBe(1)
  expect([world.found(scope, network(...one)), world.found(scope, network(...two))]).toEqual([[first], [second]])
  world.remove(first)
  expect([world.found(scope, network(...one)), world.found(scope, network(...two))]).toEqual([[], [second]])
  world.remove(second)
  expect([world.store.byStem.entries, world.store.trieNodes.live]).toEqual([0, 0])
})

test('a network in two scopes whose stems have one hash belongs to one', () => {
  const world = new World()
  const address: Network = { family: 4, words: [0xc0000201], prefixLength: 32 }
  const byHash = new Map<number, number>()
  let pair: number[] = []
  for (let scope = 1; pair.length === 0; scope++) {
    const hash = world.store.networks.stemHash(scope, TYPE_IP4, 0xc0000201, 0)
    const known = byHash.get(hash)
    if (known !== undefined) pair = [known, scope]
    byHash.set(hash, scope)
  }
  const [one = 0, two = 0] = pair
  const [first, second] = [world.add(one, address), world.add(two, address)]
  expect([world.found(one, address), world.found(two, address)]).toEqual([[first], [second]])
  world.remove(second)
  expect([world.found(one, address), world.found(two, address)]).toEqual([[first], []])
})
