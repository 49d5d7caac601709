/**
 * Defines the kinds of check that a run sends, and their order. Every kind is spread evenly over the run, and two runs with the same mix
 * send the same sequence of kinds.
 */

/**
 * - `known`: a machine that holds a slot.
 * - `new`: a machine id that was never sent before.
 * - `blacklisted`, `excluded`: a machine id that a blacklist or an exclusion matches.
 * - `unknown`: a license key that does not exist.
 */
const CHECK_KINDS = ['known', 'new', 'blacklisted', 'excluded', 'unknown'] as const
export type CheckKind = (typeof CHECK_KINDS)[number]
export type Mix = ReadonlyMap<CheckKind, number>

/** Parses `known=90,new=2`. Weights are relative and need not add up to 100. Throws an Error that names the invalid part. */
export function parseMix(text: string): Mix {
  const mix = new Map<CheckKind, number>()
  for (const part of text.split(',')) {
    const [name = '', weightText = '', ...rest] = part.split('=').map((piece) => piece.trim())
    const kind = CHECK_KINDS.find((known) => known === name)
    if (kind === undefined) throw new Error(`"${name}" is not a kind of check. Allowed: ${CHECK_KINDS.join(', ')}`)
    if (mix.has(kind)) throw new Error(`"${kind}" is given twice`)
    const weight = Number(weightText)
    if (rest.length > 0 || weightText === '' || !Number.isFinite(weight) || weight < 0) {
      throw new Error(`"${part.trim()}" needs a number of at least 0 after "=", such as ${kind}=90`)
    }
    if (weight > 0) mix.set(kind, weight)
  }
  if (mix.size === 0) throw new Error('every weight is 0; at least one must be greater')
  return mix
}

/** Returns `length` kinds in the proportions of the mix, each spread evenly (smooth weighted round robin). */
export function interleave<Kind>(mix: ReadonlyMap<Kind, number>, length: number): Kind[] {
  const entries = [...mix].map(([kind, weight]) => ({ kind, weight, credit: 0 }))
  const total = entries.reduce((sum, entry) => sum + entry.weight, 0)
  return Array.from({ length }, () => {
    for (const entry of entries) entry.credit += entry.weight
    const next = entries.reduce((best, entry) => (entry.credit > best.credit ? entry : best))
    next.credit -= total
    return next.kind
  })
}

export function formatMix(mix: Mix): string {
  return [...mix].map(([kind, weight]) => `${kind}=${weight}`).join(',')
}
