/**
 * A keyed 128-bit hash of byte strings: HalfSipHash-2-4 with 64 bits of output (Aumasson and Bernstein), run twice under
 * independent keys. Callers choose machine ids and license keys, but without the hash's key they cannot find a
 * collision. So the index stores hashes of fixed length in place of the bytes. The two runs are interleaved, because
 * the processor can execute them in parallel.
 */

export class KeyedHash {
  readonly #key: readonly number[]

  /** `key` has four words. The first run uses the first two words, and the second run uses the last two. */
  constructor(key: readonly number[]) {
    this.#key = key
  }

  /** Writes the hash of the first `length` bytes of `bytes` to the first four words of `out`. */
  hash(bytes: Uint8Array, length: number, out: Int32Array): void {
    const key = this.#key
    let v0 = key[0]!
    let v1 = key[1]! ^ 0xee
    let v2 = 0x6c796765 ^ key[0]!
    let v3 = 0x74656462 ^ key[1]!
    let w0 = key[2]!
    let w1 = key[3]! ^ 0xee
    let w2 = 0x6c796765 ^ key[2]!
    let w3 = 0x74656462 ^ key[3]!
    const blocks = length >> 2
    // Each iteration absorbs one block with two rounds. Four more iterations follow the last block and absorb nothing:
    // two for each of the two words that a run produces.
    for (let step = 0; step < blocks + 5; step++) {
      let m = 0
      if (step <= blocks) {
        m = step < blocks ? littleEndian(bytes, 4 * step) : lastBlock(bytes, length)
      } else if (step === blocks + 1) {
        v2 ^= 0xee
        w2 ^= 0xee
      } else if (step === blocks + 3) {
        out[0] = v1 ^ v3
        out[2] = w1 ^ w3
        v1 ^= 0xdd
        w1 ^= 0xdd
      }
      v3 ^= m
      w3 ^= m
      for (let round = 0; round < 2; round++) {
        v0 = (v0 + v1) | 0
        w0 = (w0 + w1) | 0
        v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0
        w1 = ((w1 << 5) | (w1 >>> 27)) ^ w0
        v0 = (v0 << 16) | (v0 >>> 16)
        w0 = (w0 << 16) | (w0 >>> 16)
        v2 = (v2 + v3) | 0
        w2 = (w2 + w3) | 0
        v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2
        w3 = ((w3 << 8) | (w3 >>> 24)) ^ w2
        v0 = (v0 + v3) | 0
        w0 = (w0 + w3) | 0
        v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0
        w3 = ((w3 << 7) | (w3 >>> 25)) ^ w0
        v2 = (v2 + v1) | 0
        w2 = (w2 + w1) | 0
        v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2
        w1 = ((w1 << 13) | (w1 >>> 19)) ^ w2
        v2 = (v2 << 16) | (v2 >>> 16)
        w2 = (w2 << 16) | (w2 >>> 16)
      }
      v0 ^= m
      w0 ^= m
    }
    out[1] = v1 ^ v3
    out[3] = w1 ^ w3
  }
}

function littleEndian(bytes: Uint8Array, at: number): number {
  return bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24)
}

/** Returns the last, incomplete block: the remaining bytes, with the length in the highest byte. */
function lastBlock(bytes: Uint8Array, length: number): number {
  let block = length << 24
  const from = length & ~3
  for (let i = from; i < length; i++) block |= bytes[i]! << (8 * (i - from))
  return block
}
