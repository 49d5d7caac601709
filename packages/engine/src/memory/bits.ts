/**
 * Bytes as 32-bit words, and the mixing of words. Ids are read big-endian, so that comparing their words as unsigned
 * numbers orders them as their bytes do.
 */

/** The big-endian word at byte `at`. */
export function readWord(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 24) | (bytes[at + 1]! << 16) | (bytes[at + 2]! << 8) | bytes[at + 3]!
}

/** Writes `count` words from `words[from]` on as big-endian bytes. */
export function writeBytes(words: Int32Array, from: number, count: number, out: Uint8Array): void {
  for (let i = 0; i < count; i++) {
    const word = words[from + i]!
    out[4 * i] = word >>> 24
    out[4 * i + 1] = word >>> 16
    out[4 * i + 2] = word >>> 8
    out[4 * i + 3] = word
  }
}

/** A bijection of 32-bit words in which every bit of the input reaches every bit of the output (MurmurHash3's last step). */
export function scramble(word: number): number {
  let h = word
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return h ^ (h >>> 16)
}

/**
 * Two words and a secret seed as one hash. Who chooses the words cannot tell which share a bucket: both meet the seed before
 * they meet each other.
 */
export function hashPair(w0: number, w1: number, seed: number): number {
  return scramble(scramble(w0 ^ seed) ^ scramble(w1 + seed))
}

/** Four words and a seed as one hash. Not for words that strangers choose. */
export function hashWords(w0: number, w1: number, w2: number, w3: number, seed: number): number {
  let h = scramble(w0 ^ seed)
  h = scramble(w1 ^ h)
  h = scramble(w2 ^ h)
  return scramble(w3 ^ h)
}
