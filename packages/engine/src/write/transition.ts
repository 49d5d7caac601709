/**
 * The rules that a change in phases keeps in force, or keeps out of it, until its last phase (`section-order.ts`). In the
 * first phase, blacklists, exclusions and restrictions only become stricter; this class holds what the later phases undo.
 *
 * A scope is restricted to what its restrictions of a type match, so adding the first one restricts, and adding another one
 * loosens. Between the phases, a type of a scope is restricted where it was or will be, and only restrictions that were and
 * will be there satisfy a check. No check sees the restrictions of a scope come or go one by one:
 *
 *   - Where there were none, new ones are *dormant*: they match, and restrict nothing until the first phase ends.
 *   - Where there were some, new ones are *hollow*: they restrict, and satisfy no check until their turn in the last phase.
 *   - Those that go become hollow when the first phase ends; but where none stays, dormant when the last phase begins.
 */

import { GENERATION, ROW_WORDS, RULE_DORMANT, RULE_HOLLOW, RULE_TRAITS } from '../memory/layout.ts'
import type { Region } from '../memory/shared-memory.ts'
import type { RestrictionTimes } from './restriction-times.ts'

/** Runs a function as one write section. */
export type RunSection = (write: () => void) => void

/** A rule's row with its generation: in another generation the row holds another rule. */
export interface RuleRow {
  row: number
  generation: number
}

export class Transition {
  /** Rows that no id leads to, and that are still in force. */
  readonly detached: number[] = []
  /** Restrictions that go. */
  leaving: RuleRow[] = []
  /** Restrictions that restrict nothing yet. */
  dormant: RuleRow[] = []
  /** Of a restriction whose end becomes later: its new, hollow row, and its old row, which has no id. */
  readonly companions = new Map<number, number>()

  get isEmpty(): boolean {
    return this.detached.length + this.leaving.length + this.dormant.length + this.companions.size === 0
  }
}

/**
 * Ends the first phase: new restrictions take effect, and those that go become hollow where others stay. It takes write
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
    if ((rules.words[at]! & RULE_DORMANT) === 0) return
    rules.words[at]! &= ~RULE_DORMANT
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
    if (times.countOf(key) > counts.get(key)!) rules.words[at]! |= RULE_HOLLOW
    else transition.leaving.push(leavingRow)
  })
}

/** Begins the last phase: scopes whose restrictions all go are not restricted any more. It takes write sections, as above. */
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
    rules.words[at]! |= RULE_DORMANT
  })
}

function inSections(
  of: readonly RuleRow[],
  { words }: Region,
  rows: number,
  section: RunSection,
  write: (row: RuleRow, traitsAt: number) => void,
): void {
  for (let from = 0; from < of.length; from += rows) {
    section(() => {
      for (const one of of.slice(from, from + rows)) {
        if (words[one.row * ROW_WORDS + GENERATION] === one.generation) write(one, one.row * ROW_WORDS + RULE_TRAITS)
      }
    })
  }
}
