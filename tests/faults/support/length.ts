/** Defines the forms of fault tests. The short form runs by default. The long form runs more repetitions and prints figures. */

import { appendFileSync } from 'node:fs'

export const isLong = Boolean(process.env['KEYWARD_LONG'])

export function byLength<T>(short: T, long: T): T {
  return isLong ? long : short
}

/** Returns the seed of KEYWARD_SEED, or `given`. */
export function seedOr(given: number): number {
  const named = Number(process.env['KEYWARD_SEED'])
  return Number.isSafeInteger(named) && named > 0 ? named : given
}

/** Reports a measured figure: prints it in the long form, and appends it to the file that KEYWARD_FIGURES names. */
export function figure(what: string, values: Record<string, number | string>): void {
  const line = `${what}: ${Object.entries(values)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ')}`
  if (isLong) process.stdout.write(`${line}\n`)
  const file = process.env['KEYWARD_FIGURES']
  if (file !== undefined) appendFileSync(file, `${line}\n`)
}

/** Returns quantiles. `values` may be in any order. */
export function quantiles(values: readonly number[]): { p50: number; p99: number; most: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (share: number): number => Math.round(sorted[Math.floor((sorted.length - 1) * share)] ?? 0)
  return { p50: at(0.5), p99: at(0.99), most: at(1) }
}
