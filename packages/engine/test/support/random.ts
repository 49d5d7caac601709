/** Returns seeded pseudorandom values. The same seed yields the same world on every machine. */

export interface Random {
  /** Returns an integer from 0 to n - 1. */
  int(n: number): number
  chance(probability: number): boolean
  pick<T>(values: readonly T[]): T
  bytes(length: number): Uint8Array
  shuffle<T>(values: readonly T[]): T[]
}

export function random(seed: number): Random {
  let state = seed | 0
  const next = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (n: number): number => Math.floor(next() * n)
  return {
    int,
    chance: (probability) => next() < probability,
    pick: (values) => {
      const value = values[int(values.length)]
      if (value === undefined) throw new Error('There is nothing to pick from.')
      return value
    },
    bytes: (length) => Uint8Array.from({ length }, () => int(256)),
    shuffle: (values) => {
      const result = [...values]
      for (let i = result.length - 1; i > 0; i--) {
        const j = int(i + 1)
        ;[result[i], result[j]] = [result[j]!, result[i]!]
      }
      return result
    },
  }
}
