/**
 * Tests random sequences of imports, replacements of sets, deletions of sets, merges and expiries (docs/api.md#r3). A verdict depends only on
 * the effects that are in force: what rules match, with which mode and option, and until when. After each step, the effects of the stored
 * rules must equal the effects of all that the sources have said. `KEYWARD_SEED=n` selects the first seed.
 */

import { accessRule, page } from '@keyward/contract'
import { type Random, random } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import {
  type Existing,
  identityOf,
  MAX_RULES_OF_VALUE,
  planAddition,
  planMerge,
  planReplacement,
} from '../../src/resources/access-rules/sources.ts'
import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, type Vendor } from '../support/vendor.ts'

const isLong = process.env['KEYWARD_LONG'] !== undefined
const SEQUENCES = isLong ? 100_000 : 2_000
const REQUESTED_SEQUENCES = isLong ? 200 : 8
const FIRST_SEED = Number(process.env['KEYWARD_SEED'] ?? 1)

type Rule = Omit<Existing, 'id' | 'isExpired'>

/** Returns the time until which each effect is in force. Effects that have ended are absent. */
function effectsOf(rules: readonly Rule[], nowMs: number): Record<string, number> {
  const effects: Record<string, number> = {}
  for (const rule of rules) {
    const end = rule.expiresAt?.getTime() ?? Infinity
    if (end <= nowMs) continue
    const effect = `${identityOf(rule)} ${rule.mode} ${rule.allowSuspendedOrExpired}`
    effects[effect] = Math.max(effects[effect] ?? 0, end)
  }
  return effects
}

function randomRule(r: Random, customers: readonly string[], set: string | null, ends: readonly (Date | null)[]): Rule {
  const type = r.pick(['IP', 'HWID', 'CUSTOMER', 'CUSTOMER'] as const)
  const kind = type === 'CUSTOMER' ? 'BLACKLIST' : r.pick(['BLACKLIST', 'EXCLUSION', 'RESTRICTION'] as const)
  const values = { IP: ['192.0.2.0/24', '192.0.2.7'], HWID: ['m'], CUSTOMER: customers }
  return {
    kind,
    type,
    value: r.pick(values[type]),
    scope: 'ORGANIZATION',
    scopeId: null,
    set,
    mode: r.pick(['ENFORCE', 'ENFORCE', 'MONITOR'] as const),
    note: r.pick([null, 'n']),
    expiresAt: r.pick(ends),
    allowSuspendedOrExpired: kind === 'EXCLUSION' && r.chance(0.5),
  }
}

/** The statements of all sources. */
class Statements {
  all: Rule[] = []

  replace(set: string, rules: readonly Rule[]): void {
    this.all = [...this.all.filter((rule) => rule.set !== set), ...rules]
  }

  merge(gone: string, into: string): void {
    this.all = this.all.map((rule) => (rule.value === gone ? { ...rule, value: into } : rule))
  }
}

function requireEqual(actual: number, expected: number): void {
  if (actual !== expected) throw new Error(`${actual} rules are accounted for instead of ${expected}`)
}

/** Stores rules as the service does, without a database. */
class Store {
  rules: Existing[] = []
  nowMs = 0
  #ids = 0

  get current(): Existing[] {
    return this.rules.map((rule) => ({ ...rule, isExpired: (rule.expiresAt?.getTime() ?? Infinity) <= this.nowMs }))
  }

  #withIds(rules: readonly Rule[]): Existing[] {
    return rules.map((rule) => ({ ...rule, id: String(++this.#ids).padStart(8, '0'), isExpired: false }))
  }

  #remove(gone: readonly { id: string }[]): void {
    const ids = new Set(gone.map(({ id }) => id))
    this.rules = this.rules.filter(({ id }) => !ids.has(id))
  }

  async #add(given: readonly Existing[]): Promise<boolean> {
    const { added, replaced, excessive } = await planAddition(this.current, given)
    this.#remove(replaced)
    this.rules.push(...added)
    return excessive.length === 0
  }

  /** Returns whether the service accepts the import. */
  import(rules: readonly Rule[]): Promise<boolean> {
    return this.#add(this.#withIds(rules))
  }

  async replace(set: string, rules: readonly Rule[]): Promise<boolean> {
    const { added } = await planAddition([], this.#withIds(rules))
    const stored = this.current.filter((rule) => rule.set === set)
    const { created, updated, removed, kept, unchanged } = await planReplacement(stored, added)
    requireEqual(unchanged.length + updated.length + removed.length, stored.length)
    requireEqual(kept.size + created.length, added.length)
    this.#remove(removed)
    const changed = new Map(updated.map((rule) => [rule.id, rule]))
    this.rules = this.rules.map((rule) => changed.get(rule.id) ?? rule)
    return this.#add(created)
  }

  merge(gone: string, into: string): boolean {
    const own = (value: string) => this.current.filter((rule) => rule.value === value)
    const { folded, moved, isExcessive } = planMerge(own(gone), own(into))
    requireEqual(folded.length + moved.length, own(gone).length)
    const ids = new Set(moved.map(({ id }) => id))
    this.rules = this.rules.map((rule) => (ids.has(rule.id) ? { ...rule, value: into } : rule))
    this.#remove(folded.map((pair) => pair.gone))
    return !isExcessive
  }
}

async function runSequence(r: Random): Promise<number> {
  const store = new Store()
  const statements = new Statements()
  const customers = ['customer-1', 'customer-2', 'customer-3']
  let most = 0
  for (let step = 0; step < 6; step++) {
    const ends = [null, ...[1, 2, 3].map((ms) => new Date(store.nowMs + ms))]
    const draw = (set: string | null) => Array.from({ length: r.int(5) }, () => randomRule(r, customers, set, ends))
    const set = r.pick(['a', 'b'])
    const dice = r.int(10)
    let accepted = true
    if (dice < 4) {
      const rules = draw(r.pick([null, null, set]))
      statements.all.push(...rules)
      accepted = await store.import(rules)
    } else if (dice < 7) {
      const rules = draw(set)
      statements.replace(set, rules)
      accepted = await store.replace(set, rules)
    } else if (dice < 8) store.nowMs += r.int(3)
    else if (customers.length > 1) {
      const gone = customers.shift()!
      const into = r.pick(customers)
      statements.merge(gone, into)
      accepted = store.merge(gone, into)
    }
    expect(accepted).toBe(true)
    expect(effectsOf(store.rules, store.nowMs)).toEqual(effectsOf(statements.all, store.nowMs))
    most = Math.max(most, ...Object.values(Object.groupBy(store.rules, identityOf)).map((group) => group?.length ?? 0))
  }
  return most
}

test(
  'the stored rules have the effects of all that the sources say, after random sequences',
  { timeout: 3_600_000 },
  async () => {
    let most = 0
    for (let seed = FIRST_SEED; seed < FIRST_SEED + SEQUENCES; seed++) {
      try {
        most = Math.max(most, await runSequence(random(seed)))
      } catch (error) {
        throw new Error(`the sequence with the seed ${seed} fails`, { cause: error })
      }
    }
    // The sequences must lead to several rules of the same value.
    expect(most).toBeGreaterThan(3)
    expect(most).toBeLessThanOrEqual(MAX_RULES_OF_VALUE)
  },
)

let harness: Harness
beforeAll(async () => {
  harness = await startHarness()
})
afterAll(() => harness.close())

/** Runs a random sequence of requests. The time passes by moving the ends of rules into the past. Rows also name merged customers. */
async function runRequests(vendor: Vendor, r: Random): Promise<void> {
  const statements = new Statements()
  const customers = [await vendor.customer(), await vendor.customer(), await vendor.customer()]
  const named = [...customers]
  const remaining = new Map(named.map((id) => [id, id]))
  const follow = (rules: readonly Rule[]) =>
    rules.map((rule): Rule => ({ ...rule, value: remaining.get(rule.value) ?? rule.value }))
  const hours = Array.from({ length: 12 }, (_, i) => new Date(Date.now() + (i + 1) * 3_600_000))
  let passed = 0
  const ask = async (method: string, path: string, body: object): Promise<void> => {
    const response = await vendor.call(method, path, { body })
    if (response.status !== 200) throw new Error(response.text)
  }
  for (let step = 0; step < 8; step++) {
    const draw = (set: string | null) =>
      Array.from({ length: 1 + r.int(4) }, () => randomRule(r, named, set, [null, ...hours.slice(passed, passed + 3)]))
    const set = r.pick(['a', 'b'])
    const dice = r.int(11)
    if (dice < 4) {
      const rules = draw(r.pick([null, null, set]))
      statements.all.push(...follow(rules))
      await ask('POST', 'access-rules/import', { rules })
    } else if (dice < 7) {
      const rules = draw(set)
      statements.replace(set, follow(rules))
      await ask('PUT', `access-rules/sets/${set}`, {
        rules: rules.map((rule) => Object.assign({}, rule, { set: null })),
      })
    } else if (dice < 8) {
      statements.replace(set, [])
      const { status, text } = await vendor.call('DELETE', `access-rules/sets/${set}`)
      if (status !== 204 && status !== 404) throw new Error(text)
    } else if (dice < 9) {
      await harness.database.pool.query(
        `update access_rules set expires_at = now() - interval '1 second' where organization_id = $1 and expires_at <= $2`,
        [vendor.id, hours[passed]],
      )
      passed++
    } else if (customers.length > 1) {
      const gone = customers.shift()!
      const into = r.pick(customers)
      statements.merge(gone, into)
      for (const [id, now] of remaining) if (now === gone) remaining.set(id, into)
      await ask('POST', `customers/${gone}/merge`, { into })
    }
    const nowMs = passed === 0 ? Date.now() : hours[passed - 1]!.getTime()
    const response = await vendor.call('GET', 'access-rules?limit=100')
    const stored = page(accessRule)
      .parse(response.body)
      .data.map((rule) => Object.assign(rule, { expiresAt: rule.expiresAt === null ? null : new Date(rule.expiresAt) }))
    expect(effectsOf(stored, nowMs)).toEqual(effectsOf(statements.all, nowMs))
  }
}

test(
  'the service keeps the effects of all that the sources say, after random sequences of requests',
  { timeout: 3_600_000 },
  async () => {
    for (let seed = FIRST_SEED; seed < FIRST_SEED + REQUESTED_SEQUENCES; seed++) {
      const run = runRequests(await createVendor(harness), random(seed))
      await expect(run, `the sequence with the seed ${seed}`).resolves.toBeUndefined()
    }
  },
)
