/**
 * Records the rules that a change in phases writes again in a later phase (`section-order.ts`). In the first phase, rules only become
 * stricter. The later phases undo what became too strict.
 *
 * A scope with restrictions of a type allows only checks that match one of them. So the first restriction of a type rejects checks, and
 * each further one allows more checks. Between the phases, a type of a scope is restricted if it was restricted before the change or will
 * be restricted after it. A check can satisfy only restrictions that exist before and after the change. So the restrictions of a scope take
 * effect together, and end together:
 *
 *   - New restrictions of a type that had none are *dormant*. They match, and restrict nothing until the first phase ends.
 *   - Other new restrictions are *hollow*. They restrict, and no check satisfies them until they are written in the last phase.
 *   - Removed restrictions become hollow when the first phase ends. If no restriction of the type stays, they become
 *     dormant instead, when the last phase begins.
 */

import { GENERATION, ROW_WORDS, RULE_DORMANT, RULE_HOLLOW, RULE_TRAITS } from '../memory/layout.ts'
import type { Region } from '../memory/shared-memory.ts'
import type { RestrictionTimes } from './restriction-times.ts'

/** Runs a function as one write section. */
export type RunSection = (write: () => void) => void

/** A rule's row with its generation. If the row has another generation, it contains another rule. */
export interface RuleRef {
  row: number
  generation: number
}

export class Transition {
  /** Rows that are still in force, but detached from their ids. */
  readonly detached: number[] = []
  /** Restrictions that the change removes. */
  leaving: RuleRef[] = []
  /** New restrictions that restrict nothing yet. */
  dormant: RuleRef[] = []
  /** The restrictions whose expiry becomes later. The key is the new, hollow row. The value is the old row, which is detached. */
  readonly companions = new Map<number, number>()

  get isEmpty(): boolean {
    return this.detached.length + this.leaving.length + this.dormant.length + this.companions.size === 0
  }
}

/**
 * Ends the first phase: new restrictions take effect, and removed restrictions become hollow where others of their type remain. Writes in
 * sections of at most `rows` rows.
 */
export function endRestricting(
  transition: Transition,
  times: RestrictionTimes,
  rules: Region,
  rows: number,
  section: RunSection,
): void {
  const { dormant, leaving } = transition
  transition.dormant = []
  inSections(dormant, rules, rows, section, ({ row }, at) => {
    if ((rules.get(at) & RULE_DORMANT) === 0) return
    rules.set(at, rules.get(at) & ~RULE_DORMANT)
    times.add(row)
  })
  const counts = new Map<number, number>()
  for (const { row } of leaving) {
    const key = times.keyOf(row)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  transition.leaving = []
  inSections(leaving, rules, rows, section, (leavingRow, at) => {
    const key = times.keyOf(leavingRow.row)
    if (times.countOf(key) > counts.get(key)!) rules.set(at, rules.get(at) | RULE_HOLLOW)
    else transition.leaving.push(leavingRow)
  })
}

/**
 * Begins the last phase: scopes that lose all restrictions of a type are no longer restricted. Writes in sections of at
 * most `rows` rows.
 */
export function beginLoosening(
  transition: Transition,
  times: RestrictionTimes,
  rules: Region,
  rows: number,
  section: RunSection,
): void {
  const { leaving } = transition
  transition.leaving = []
  inSections(leaving, rules, rows, section, ({ row }, at) => {
    times.delete(row)
    rules.set(at, rules.get(at) | RULE_DORMANT)
  })
}

function inSections(
  of: readonly RuleRef[],
  words: Region,
  rows: number,
  section: RunSection,
  write: (row: RuleRef, traitsAt: number) => void,
): void {
  for (let from = 0; from < of.length; from += rows) {
    section(() => {
      for (const one of of.slice(from, from + rows)) {
        if (words.get(one.row * ROW_WORDS + GENERATION) === one.generation)
          write(one, one.row * ROW_WORDS + RULE_TRAITS)
      }
    })
  }
}
