/**
 * Maintains the times until which scopes are restricted (docs/api.md#v15): for each scope and type, the latest expiry of the enforced
 * restrictions that are not dormant. The scope's record contains that time, so a check needs one comparison per type. The expiries of all
 * restrictions exist only in the writer's memory.
 */

import type { IndexStore } from '../memory/index-store.ts'
import {
  EXPIRY,
  GENERATION,
  RESTRICTION_TYPE_COUNT,
  restrictionType,
  ROW_DOUBLES,
  ROW_WORDS,
  RULE_DORMANT,
  RULE_MONITOR,
  RULE_RESTRICTION,
  RULE_SCOPE,
  RULE_TRAITS,
  ruleType,
  SCOPE_RESTRICTED_UNTIL,
} from '../memory/layout.ts'

/** A multiset of numbers that returns its largest number. */
class Multiset {
  /** The number of elements. */
  size = 0
  readonly #counts = new Map<number, number>()
  /** A binary heap with the largest number first. Deleted numbers stay in it until they reach the top. */
  #heap: number[] = []

  add(value: number): void {
    this.size++
    const count = this.#counts.get(value) ?? 0
    this.#counts.set(value, count + 1)
    if (count > 0) return
    // The heap is rebuilt when more than half of it consists of deleted numbers. The margin of 16 avoids rebuilding small heaps.
    if (this.#heap.length > 2 * this.#counts.size + 16) this.#heap = [...this.#counts.keys()].toSorted((a, b) => b - a)
    else this.#push(value)
  }

  delete(value: number): void {
    const count = this.#counts.get(value) ?? 0
    if (count === 0) return
    this.size--
    if (count > 1) this.#counts.set(value, count - 1)
    else this.#counts.delete(value)
  }

  /** Returns the largest number, or 0 when there is none. */
  largest(): number {
    while (this.#heap.length > 0 && !this.#counts.has(this.#heap[0]!)) this.#pop()
    return this.#heap[0] ?? 0
  }

  #push(value: number): void {
    const heap = this.#heap
    let at = heap.push(value) - 1
    while (at > 0) {
      const parent = (at - 1) >>> 1
      if (heap[parent]! >= value) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = value
  }

  #pop(): void {
    const heap = this.#heap
    const last = heap.pop()!
    if (heap.length === 0) return
    let at = 0
    for (;;) {
      let child = 2 * at + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && heap[child + 1]! > heap[child]!) child++
      if (heap[child]! <= last) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
  }
}

export class RestrictionTimes {
  readonly #store: IndexStore
  /** The expiries of restrictions, by scope and type (see `keyOf`). */
  readonly #ends = new Map<number, Multiset>()

  constructor(store: IndexStore) {
    this.#store = store
  }

  /** Replaces the expiries by those of all restrictions in the index. Does not change the index. */
  rebuild(): void {
    const { highest, region } = this.#store.rules
    this.#ends.clear()
    for (let row = 1; row <= highest; row++) if (region.get(row * ROW_WORDS + GENERATION) !== 0) this.#add(row)
  }

  /** Adds the rule's expiry to its scope and type, if the rule is an enforced restriction that is not dormant. */
  add(row: number): void {
    const ends = this.#add(row)
    if (ends !== null) this.#publish(this.keyOf(row), ends)
  }

  /** Removes the rule's expiry. The rule's record must not have changed since `add`. */
  delete(row: number): void {
    if (!this.#counts(row)) return
    const key = this.keyOf(row)
    const ends = this.#ends.get(key)
    if (ends === undefined) return
    ends.delete(this.#endOf(row))
    if (ends.size === 0) this.#ends.delete(key)
    this.#publish(key, ends)
  }

  /** Returns a number that identifies the scope and the type of a restriction. */
  keyOf(row: number): number {
    const words = this.#store.rules.region
    const type = restrictionType(ruleType(words.get(row * ROW_WORDS + RULE_TRAITS)))
    return words.get(row * ROW_WORDS + RULE_SCOPE) * RESTRICTION_TYPE_COUNT + type
  }

  /** Returns the number of expiries stored for a scope and type (see `keyOf`). */
  countOf(key: number): number {
    return this.#ends.get(key)?.size ?? 0
  }

  /** Adds the rule's expiry without writing to the index. Returns the expiries of its scope and type, or null if the rule does not count. */
  #add(row: number): Multiset | null {
    if (!this.#counts(row)) return null
    const key = this.keyOf(row)
    let ends = this.#ends.get(key)
    if (ends === undefined) this.#ends.set(key, (ends = new Multiset()))
    ends.add(this.#endOf(row))
    return ends
  }

  #counts(row: number): boolean {
    const traits = this.#store.rules.region.get(row * ROW_WORDS + RULE_TRAITS)
    return (traits & (RULE_RESTRICTION | RULE_MONITOR | RULE_DORMANT)) === RULE_RESTRICTION
  }

  #endOf(row: number): number {
    return this.#store.rules.region.getDouble(row * ROW_DOUBLES + EXPIRY)
  }

  #publish(key: number, ends: Multiset): void {
    const scope = Math.floor(key / RESTRICTION_TYPE_COUNT)
    const at = scope * ROW_DOUBLES + SCOPE_RESTRICTED_UNTIL / 2 + (key % RESTRICTION_TYPE_COUNT)
    this.#store.scopes.region.setDouble(at, Math.max(ends.largest(), 0))
  }
}
