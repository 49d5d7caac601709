/**
 * Converts between bytes and 32-bit words, and mixes words. Ids are read as big-endian words, so their order as
 * unsigned words is the order of their bytes.
 */

/** Returns the big-endian word at byte `at`. */
export function readWord(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

/** Writes `count` words, starting at the word `from`, to `out` as big-endian bytes. */
export function writeBytes(words: { get(at: number): number }, from: number, count: number, out: Uint8Array): void {
  for (let i = 0; i < count; i++) {
    const word = words.get(from + i)
    out[4 * i] = word >>> 24
    out[4 * i + 1] = word >>> 16
    out[4 * i + 2] = word >>> 8
    out[4 * i + 3] = word
  }
}

/** A bijection of 32-bit words in which every input bit affects every output bit (the finalizer of MurmurHash3). */
export function scramble(word: number): number {
  let h = word
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

/**
 * Returns a hash of two words and a secret seed. Each word is mixed with the seed before the two are combined, so a
 * caller who chooses the words but has no access to the seed cannot direct them to one bucket.
 */
export function hashPair(w0: number, w1: number, seed: number): number {
  return scramble(scramble(w0 ^ seed) ^ scramble(w1 + seed))
}

/**
 * Returns a hash of four words and a seed. It does not resist chosen words, so use it only for ids that the database
 * generates.
 */
export function hashWords(w0: number, w1: number, w2: number, w3: number, seed: number): number {
  let h = scramble(w0 ^ seed)
  h = scramble(w1 ^ h)
  h = scramble(w2 ^ h)
  return scramble(w3 ^ h)
}
