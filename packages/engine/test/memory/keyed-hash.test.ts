import { expect, test } from 'vitest'

import { KeyedHash } from '../../src/memory/keyed-hash.ts'

/**
 * The published vectors of HalfSipHash-2-4 with 32 bits of output. The key is 00 01 … 07, and the message of vector n
 * is the first n bytes of 00 01 …. The 64-bit form differs in three constants. Its vector for the empty message is in
 * the first test.
 */
const VECTORS = [
  0x5b9f35a9, 0xb85a4727, 0x03a662fa, 0x04e7fe8a, 0x89466e2a, 0x69b6fac5, 0x23fc6358, 0xc563cf8b, 0x8f84b8d0,
  0x79e706f8, 0x3479b094, 0x50300808, 0x2f87f057, 0xff63e677, 0x7cf8ffd6, 0x972bfe74, 0x84acb5d9, 0x5b6474c4,
  0x9b8d5b46, 0x87e3ef7b,
]
const K0 = 0x03020100
const K1 = 0x07060504

/** Returns the words of a hash by the textbook algorithm, with one instance and no interleaving. */
function halfSipHash(message: Uint8Array, k0: number, k1: number, outputBits: 32 | 64): number[] {
  const long = outputBits === 64
  let [v0, v1, v2, v3] = [k0, k1 ^ (long ? 0xee : 0), 0x6c796765 ^ k0, 0x74656462 ^ k1]
  const rotate = (x: number, bits: number): number => (x << bits) | (x >>> (32 - bits))
  const rounds = (count: number): void => {
    for (let i = 0; i < count; i++) {
      v0 = (v0 + v1) | 0
      v1 = rotate(v1, 5) ^ v0
      v0 = rotate(v0, 16)
      v2 = (v2 + v3) | 0
      v3 = rotate(v3, 8) ^ v2
      v0 = (v0 + v3) | 0
      v3 = rotate(v3, 7) ^ v0
      v2 = (v2 + v1) | 0
      v1 = rotate(v1, 13) ^ v2
      v2 = rotate(v2, 16)
    }
  }
  const padded = new Uint8Array((message.length & ~3) + 4)
  padded.set(message)
  padded[padded.length - 1] = message.length
  const view = new DataView(padded.buffer)
  for (let at = 0; at < padded.length; at += 4) {
    const word = view.getInt32(at, true)
    v3 ^= word
    rounds(2)
    v0 ^= word
  }
  v2 ^= long ? 0xee : 0xff
  rounds(4)
  const first = v1 ^ v3
  if (!long) return [first]
  v1 ^= 0xdd
  rounds(4)
  return [first, v1 ^ v3]
}

function counting(length: number): Uint8Array {
  return Uint8Array.from({ length }, (_, i) => i)
}

test('the textbook algorithm reproduces the published vectors of HalfSipHash-2-4', () => {
  const words = VECTORS.map((_, length) => halfSipHash(counting(length), K0, K1, 32).map((word) => word >>> 0))
  expect(words).toEqual(VECTORS.map((vector) => [vector]))
  expect(halfSipHash(counting(0), K0, K1, 64)).toEqual([0x591f8d21, 0xc83cb8b9 | 0])
})

test('computes the 64-bit form, once for each half of the key', () => {
  const hash = new KeyedHash([K0, K1, 0x11223344, 0x55667788])
  const words = new Int32Array(4)
  for (let length = 0; length <= 600; length++) {
    const message = counting(length)
    hash.hash(message, length, words)
    expect([...words]).toEqual([
      ...halfSipHash(message, K0, K1, 64),
      ...halfSipHash(message, 0x11223344, 0x55667788, 64),
    ])
  }
})

test('ignores the bytes after the given length', () => {
  const hash = new KeyedHash([1, 2, 3, 4])
  const [words, others] = [new Int32Array(4), new Int32Array(4)]
  hash.hash(counting(7), 7, words)
  hash.hash(counting(64), 7, others)
  expect(others).toEqual(words)
})
