/**
 * Makes choices that look random and are the same in every run. Each choice depends only on its label, so a new choice changes no other
 * one.
 */

import { createHash } from 'node:crypto'

/** Returns a number of at least 0 and less than 1 that depends only on the label. */
export function chance(label: string): number {
  return createHash('sha256').update(label).digest().readUInt32BE() / 2 ** 32
}

/** Returns an integer of at least `from` and less than `to`. */
export function between(from: number, to: number, label: string): number {
  return from + Math.floor(chance(label) * (to - from))
}

/** Returns an element of a list that is not empty. */
export function pick<T>(list: readonly T[], label: string): T {
  return list[between(0, list.length, label)]!
}

const LETTERS = 'ABCDEFGHJKLMNPQRSTUVWXYZ23456789'

/** Returns a text of letters and digits, except those that look alike, such as `O` and `0`. */
export function letters(length: number, label: string): string {
  return Array.from({ length }, (_, i) => LETTERS[between(0, LETTERS.length, `${label} ${i}`)]).join('')
}
