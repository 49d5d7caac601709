/**
 * The order in which a batch of changes is written, and its division into write sections. Rows come before the rows
 * that refer to them; of rules, blacklists before exclusions; and removals last. So between two sections no check is
 * valid that would be rejected both before and after the batch. Changes of one row keep their order.
 */

import type { Change } from '../model.ts'

/** The most rows of one write section: readers wait while it is written. */
export const SECTION_ROWS = 1000

const UPSERT_PHASES: Record<Change['entity'], number> = {
  organization: 0,
  product: 1,
  customer: 2,
  credential: 3,
  license: 5,
  rule: 6, // an exclusion: one later
  machine: 8,
}
/** A customer rule is written before the licenses that a merge moves to the customer; one of a license after it. */
const CUSTOMER_RULE_PHASE = 4
const REMOVAL_PHASES: Record<Change['entity'], number> = {
  machine: 8, // machines stay in one phase: each carries the count of slots after it
  rule: 9,
  license: 10,
  credential: 11,
  customer: 12,
  product: 13,
  organization: 14,
}
const PHASES = 15

/** Yields the write sections of a batch, in order. */
export function* sectionsOf(changes: readonly Change[]): Generator<readonly Change[]> {
  // Most batches are a single claim. Ordering it would only allocate, and cause garbage collections.
  if (changes.length === 1) {
    yield changes
    return
  }
  for (const part of partsOf(changes)) {
    const ordered = order(part)
    for (let from = 0; from < ordered.length; from += SECTION_ROWS) yield ordered.slice(from, from + SECTION_ROWS)
  }
}

/**
 * Divides a batch where the order of changes matters: before a row that the batch removed and adds again, and before a
 * rule that it contains twice, because the rule may have become the other kind.
 */
function* partsOf(changes: readonly Change[]): Generator<readonly Change[]> {
  const seen = new Set<string>()
  let from = 0
  for (const [i, change] of changes.entries()) {
    const remembered = change.entity === 'rule' || (change.entity !== 'machine' && change.row === null)
    if (change.entity === 'machine' || (seen.size === 0 && !remembered)) continue
    const name = `${change.entity} ${change.id.join(' ')}`
    if (change.row !== null && seen.has(name)) {
      yield changes.slice(from, i)
      seen.clear()
      from = i
    }
    if (remembered) seen.add(name)
  }
  yield from === 0 ? changes : changes.slice(from)
}

function order(changes: readonly Change[]): readonly Change[] {
  const phases: Change[][] = Array.from({ length: PHASES }, () => [])
  for (const change of changes) phases[phaseOf(change)]!.push(change)
  return phases.flat()
}

function phaseOf(change: Change): number {
  if (change.entity === 'machine') return UPSERT_PHASES.machine
  if (change.row === null) return REMOVAL_PHASES[change.entity]
  if (change.entity !== 'rule') return UPSERT_PHASES[change.entity]
  if (change.row.type === 'CUSTOMER' && change.row.scope !== 'LICENSE') return CUSTOMER_RULE_PHASE
  return UPSERT_PHASES.rule + (change.row.kind === 'EXCLUSION' ? 1 : 0)
}
