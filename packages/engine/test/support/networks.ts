/** Networks and addresses at random. */
import type { Network } from '../../src/index.ts'
import type { AddressWords } from '../../src/prefix-trie.ts'
import { randomNetwork } from './history.ts'
import { bitsOf } from './naive.ts'
import type { Random } from './random.ts'

/** A network of the family, `whole`: an address. */
export function anyNetwork(r: Random, family: 4 | 6, whole: boolean): Network {
  for (;;) {
    const network = randomNetwork(r, whole)
    if (network.family === family) return network
  }
}

/** An address inside a network, the bits behind the prefix at random. */
export function inside(r: Random, network: Network): Network {
  const bits = network.family === 4 ? 32 : 128
  const text = bitsOf(network).slice(0, network.prefixLength) + Array.from({ length: bits }, () => r.int(2)).join('')
  return fromBits(text.slice(0, bits), network.family, bits)
}

/** The network of bits written as a text of 0 and 1, the others 0. */
export function fromBits(text: string, family: 4 | 6, prefixLength: number): Network {
  const word = (at: number): number => Number.parseInt(text.slice(32 * at, 32 * at + 32).padEnd(32, '0'), 2)
  return family === 4
    ? { family, words: [word(0)], prefixLength }
    : { family, words: [word(0), word(1), word(2), word(3)], prefixLength }
}

export function wordsOf(address: Network): AddressWords {
  const [a0 = 0, a1 = 0, a2 = 0, a3 = 0] = address.words
  return { a0, a1, a2, a3 }
}
