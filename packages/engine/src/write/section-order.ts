/**
 * The order in which a batch of changes is written, and its division into write sections.
 *
 * A verdict depends on rows of one organization, so all changes of an organization are one section unless they are too many. Readers see
 * the organization's old state until the section ends, and then its new state. Too many changes are written in phases. No state between the
 * phases allows a check that both the old and the new state reject.
 *
 *   1. The restricting changes: blacklists are added, exclusions and credentials are removed, and slots are released.
 *   2. The licenses, each with its own rules and machines in one section.
 *   3. The loosening changes: blacklists are removed, exclusions and credentials are added.
 *
 * In phase 1, a rule or credential that changes in another way gets a row that restricts at least as much as its old
 * and its new row. So a license in its old state is never combined with rules that allow more than the old ones, and a
 * license in its new state is never combined with rules that allow more than the new ones.
 */

import { hashWords, readWord } from '../memory/bits.ts'
import type { Change } from '../model.ts'
import { nameOf, NOWHERE, type Placement } from './placement.ts'

export interface SectionLimits {
  /** The number of rows up to which sections are filled. Readers wait while a section is copied into the index. */
  rows: number
  /** The maximum number of changed rows of an organization, or else of a license, that are written in one section. */
  atomicRows: number
}

export const SECTION_LIMITS: SectionLimits = { rows: 1000, atomicRows: 5_000 }

export interface Section {
  changes: readonly Change[]
  /**
   * `apply` writes the changes. `restrict` writes only the restricting parts of the changes. `loosen` first removes up to
   * `SectionLimits.rows` rules that `restrict` kept in force, and then writes the changes.
   */
  step: 'apply' | 'restrict' | 'loosen'
}

/**
 * The places of changes in `dependencyOrder`. Rows come before the rows that refer to them, and removals come last. A machine comes after
 * its license, because the change of a machine contains the license's new count of slots.
 */
const UPSERTS: Record<Change['entity'], number> = {
  organization: 0,
  product: 1,
  customer: 2,
  credential: 3,
  license: 4,
  rule: 5,
  machine: 6,
}
const REMOVALS: Record<Change['entity'], number> = {
  machine: 6, // claims and releases share one place, because each contains the count of slots after it
  rule: 7,
  license: 8,
  credential: 9,
  customer: 10,
  product: 11,
  organization: 12,
}
const PLACES = 13

/** Yields the write sections of a batch. */
export function* sectionsOf(
  changes: readonly Change[],
  placementOf: (changes: readonly Change[]) => Placement,
  limits: SectionLimits,
): Generator<Section> {
  // Most batches are a single claim. Ordering such a batch would only allocate memory.
  if (changes.length === 1) yield { changes, step: 'apply' }
  else yield* sectionsOfRows(lastChanges(changes), placementOf, limits)
}

/** Yields the write sections of a batch without regard to the states between them, for an index from which no thread decides checks. */
export function* unguardedSectionsOf(changes: readonly Change[], limits: SectionLimits): Generator<Section> {
  yield* slices(dependencyOrder(changes), limits.rows, 'apply')
}

/**
 * Returns the last change of each row and machine, in the order of the batch. A change contains the whole new row, so it replaces the earlier
 * changes of the row. The phases depend on this: they write a row's removal and its addition at different times, and could otherwise end with
 * a row that the batch has removed, or reject rows that refer to a row that the batch removes first and adds later.
 */
function lastChanges(changes: readonly Change[]): readonly Change[] {
  if (new Set(changes.map(hashOf)).size === changes.length) return changes
  const seen = new Set<string>()
  const last: Change[] = []
  for (const change of changes.toReversed()) {
    const name = fullNameOf(change)
    if (seen.has(name)) continue
    seen.add(name)
    last.push(change)
  }
  return last.toReversed()
}

/** Returns a hash of the row or machine of a change. Batches rarely contain two equal hashes, and sets of numbers are faster than sets of names. */
function hashOf(change: Change): number {
  const id = change.entity === 'machine' ? change.licenseId : change.id
  let hash = hashWords(readWord(id, 0), readWord(id, 4), readWord(id, 8), readWord(id, 12), 0)
  if (change.entity === 'machine') for (const byte of change.machineId) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash
}

/** Returns a string that identifies the row or machine of a change. */
function fullNameOf(change: Change): string {
  if (change.entity === 'machine') return nameOf(change.licenseId) + nameOf(change.machineId)
  return change.entity + nameOf(change.id)
}

/** Yields the write sections of changes that each concern another row or machine. */
function* sectionsOfRows(
  changes: readonly Change[],
  placementOf: (changes: readonly Change[]) => Placement,
  limits: SectionLimits,
): Generator<Section> {
  if (changes.length <= limits.rows) {
    yield { changes: dependencyOrder(changes), step: 'apply' }
    return
  }
  const placement = placementOf(changes)
  const groups = [...groupBy(changes, (change) => placement.organizationOf(change)).entries()]
  const atomic = groups.filter(([, group]) => group.length <= limits.atomicRows).map(([, group]) => group)
  yield* packed(atomic, limits.rows)
  for (const [organization, group] of groups) {
    if (group.length <= limits.atomicRows) continue
    // A change without an organization is a removal of an unknown row, or will be rejected.
    if (organization === NOWHERE) yield* slices(group, limits.rows, 'apply')
    else yield* phasesOf(group, placement, limits)
  }
}

/** Yields the sections of an organization whose changes are written in phases. */
function* phasesOf(changes: readonly Change[], placement: Placement, limits: SectionLimits): Generator<Section> {
  const byLicense = groupBy(changes, (change) => placement.licenseOf(change))
  const isLong = (group: readonly Change[]): boolean => group.length > limits.atomicRows
  const shared = [...(byLicense.get(null) ?? [])]
  const machines: Change[] = []
  const licenses: Change[][] = []
  for (const [license, group] of byLicense) {
    if (license === null) continue
    if (isLong(group)) {
      // The license's rules and machines do not fit into one section, so its rules are written like those of other scopes.
      shared.push(...group.filter(({ entity }) => entity === 'rule'))
      machines.push(...group.filter(({ entity }) => entity === 'machine'))
      licenses.push(group.filter(({ entity }) => entity === 'license'))
    } else licenses.push(group)
  }
  const rules = shared.filter(({ entity }) => entity === 'rule')
  const credentials = shared.filter(({ entity }) => entity === 'credential')
  const others = shared.filter(({ entity }) => entity !== 'rule' && entity !== 'credential')
  // A license must exist before rules that refer to it. A new license counts as revoked until its own section is written.
  const scopes = new Set(rules.map(scopeOf))
  const early = changes.filter((change) => change.entity === 'license' && scopes.has(nameOf(change.id)))

  yield* slices(dependencyOrder(others.filter((change) => !isRemoval(change))), limits.rows, 'apply')
  yield* slices([...credentials, ...early, ...rules, ...machines.filter(isRemoval)], limits.rows, 'restrict')
  yield* packed(licenses, limits.rows)
  // Each of these sections also removes up to `limits.rows` detached rules. There are at most as many detached rules as changes.
  yield* slices(dependencyOrder([...rules, ...credentials]), limits.rows, 'loosen')
  yield* slices(
    machines.filter((change) => !isRemoval(change)),
    limits.rows,
    'apply',
  )
  yield* slices(dependencyOrder(others.filter(isRemoval)), limits.rows, 'loosen')
}

/** Yields sections of whole groups. A group that is longer than a section becomes a separate section. */
function* packed(groups: Iterable<readonly Change[]>, rows: number): Generator<Section> {
  let open: Change[] = []
  for (const group of groups) {
    if (open.length > 0 && open.length + group.length > rows) {
      yield { changes: dependencyOrder(open), step: 'apply' }
      open = []
    }
    for (const change of group) open.push(change)
  }
  if (open.length > 0) yield { changes: dependencyOrder(open), step: 'apply' }
}

/** Yields sections of at most `rows` changes each, in the given order. */
export function* slices(changes: readonly Change[], rows: number, step: Section['step']): Generator<Section> {
  for (let from = 0; from < changes.length; from += rows) yield { changes: changes.slice(from, from + rows), step }
}

/** Returns the changes in an order in which each can be applied. */
export function dependencyOrder(changes: readonly Change[]): readonly Change[] {
  if (changes.length === 1) return changes
  const places: Change[][] = Array.from({ length: PLACES }, () => [])
  for (const change of changes) {
    const place = change.entity === 'machine' || change.row !== null ? UPSERTS : REMOVALS
    places[place[change.entity]]!.push(change)
  }
  return places.flat()
}

function isRemoval(change: Change): boolean {
  return change.entity === 'machine' ? !change.held : change.row === null
}

function scopeOf(change: Change): string {
  const scopeId = change.entity === 'rule' ? change.row?.scopeId : null
  return scopeId ? nameOf(scopeId) : ''
}

function groupBy<Name>(changes: readonly Change[], by: (change: Change) => Name): Map<Name, Change[]> {
  const groups = new Map<Name, Change[]>()
  for (const change of changes) {
    const name = by(change)
    const group = groups.get(name)
    if (group === undefined) groups.set(name, [change])
    else group.push(change)
  }
  return groups
}
