/** Random values from a seed (xoshiro128**), so that failures are reproducible. Tests contain or print their seed. */

export interface Random {
  /** Returns a number of at least 0 and less than 1. */
  readonly next: () => number
  /** Returns an integer of at least 0 and less than `limit`. */
  readonly int: (limit: number) => number
  /** Returns true with the given probability. */
  readonly chance: (probability: number) => boolean
  readonly pick: <T>(from: readonly T[]) => T
  readonly bytes: (length: number) => Uint8Array
  /** Returns a copy in random order. */
  readonly shuffle: <T>(from: readonly T[]) => T[]
}

export function random(seed: number): Random {
  let [a, b, c, d] = [mix(seed + 1), mix(seed + 2), mix(seed + 3), mix(seed + 4)]
  const next32 = (): number => {
    const rotated = Math.imul(b, 5)
    const result = Math.imul((rotated << 7) | (rotated >>> 25), 9) >>> 0
    const shifted = b << 9
    c ^= a
    d ^= b
    b ^= c
    a ^= d
    c ^= shifted
    d = (d << 11) | (d >>> 21)
    return result
  }
  const int = (limit: number): number => Math.floor((next32() / 2 ** 32) * limit)
  return {
    next: () => next32() / 2 ** 32,
    int,
    chance: (probability) => next32() / 2 ** 32 < probability,
    pick: (from) => {
      const picked = from[int(from.length)]
      if (picked === undefined) throw new RangeError('The list to pick from is empty.')
      return picked
    },
    bytes: (length) => Uint8Array.from({ length }, () => next32() & 0xff),
    shuffle: (from) => {
      const shuffled = [...from]
      for (let i = shuffled.length - 1; i > 0; i--) shuffled.splice(i, 0, ...shuffled.splice(int(i + 1), 1))
      return shuffled
    },
  }
}

/** Spreads a small number over 32 bits. */
function mix(seed: number): number {
  let z = Math.imul(seed, 0x9e3779b9)
  z = Math.imul(z ^ (z >>> 16), 0x85ebca6b)
  z = Math.imul(z ^ (z >>> 13), 0xc2b2ae35)
  return z ^ (z >>> 16)
}
