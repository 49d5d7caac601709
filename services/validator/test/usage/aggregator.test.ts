import { createHash } from 'node:crypto'

import { CODE, CODES } from '@keyward/engine'
import { random, toActivityRows } from '@keyward/testkit'
import { describe, expect, test } from 'vitest'

import { ActivityBudget } from '../../src/usage/activity-budget.ts'
import { Aggregator, type Ids } from '../../src/usage/aggregator.ts'
import type { RecordView } from '../../src/usage/ring.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 3_600_000
const START_MS = Date.UTC(2026, 0, 1) - 90_000

const idOf = (kind: number, row: number, generation: number): Uint8Array => {
  const id = new Uint8Array(16)
  new DataView(id.buffer).setUint32(0, kind)
  new DataView(id.buffer).setUint32(4, row)
  new DataView(id.buffer).setUint32(8, generation)
  return id
}
const write = (id: Uint8Array, out: Uint8Array): boolean => {
  out.set(id)
  return true
}
const ids: Ids = {
  licenseId: (row, generation, out) => write(idOf(1, row, generation), out),
  productId: (row, generation, out) => write(idOf(2, row, generation), out),
  ruleId: (row, generation, out) => write(idOf(3, row, generation), out),
  organizationId: (row, out) => write(idOf(4, row, 0), out),
}
const hex = (bytes: Uint8Array | null): string => (bytes === null ? '' : Buffer.from(bytes).toString('hex'))

const blank = {
  excluded: false,
  isNewMachine: false,
  hostname: null,
  matchedCount: 0,
  matched: new Int32Array(4),
  matchedGenerations: new Int32Array(4),
}

/**
 * Returns a hash that is unique for each machine id of these tests. It consists of the bytes of the id, which has at most five
 * bytes.
 */
function hashOf(machine: Buffer): { machineHash0: number; machineHash1: number } {
  const padded = Buffer.concat([machine, Buffer.alloc(8)])
  return { machineHash0: padded.readInt32LE(0), machineHash1: padded.readInt32LE(4) }
}

/** Returns random records of few entities, so that most entities repeat. Rows are reused with other generations. */
function records(seed: number, count: number): RecordView[] {
  const { int } = random(seed)
  return Array.from({ length: count }, () => {
    const machine = Buffer.from('m'.repeat(int(3)) + (int(4) === 0 ? '' : String(int(30))))
    const bytes = Buffer.concat([Buffer.alloc(int(5)), machine, Buffer.alloc(int(5))])
    const organization = int(2)
    return {
      ...blank,
      code: int(CODES.length),
      excluded: int(10) === 0,
      organization,
      license: int(8) - 1,
      licenseGeneration: int(2),
      product: organization * 2 + int(2),
      productGeneration: int(2),
      atMs: START_MS + int(2 * HOUR_MS),
      bytes,
      machineAt: bytes.indexOf(machine),
      machineLength: machine.length,
      ...hashOf(machine),
      matchedCount: int(3),
      matched: Int32Array.from([int(5), 5 + int(5)]),
      matchedGenerations: Int32Array.from([int(2), int(2)]),
    }
  })
}

interface Sum {
  count: number
  first: number
  last: number
}

/** Computes the expected result without regard for speed. */
function expected(all: readonly RecordView[]): {
  activity: Map<string, Sum>
  checks: Map<string, number>
  rules: Map<string, number>
} {
  const activity = new Map<string, Sum>()
  const checks = new Map<string, number>()
  const rules = new Map<string, number>()
  for (const { matched, matchedGenerations, matchedCount } of all)
    for (let i = 0; i < matchedCount; i++) {
      const id = hex(idOf(3, matched[i] ?? 0, matchedGenerations[i] ?? 0))
      rules.set(id, (rules.get(id) ?? 0) + 1)
    }
  for (const record of all.filter(({ excluded }) => !excluded)) {
    const { atMs: at, code, license, licenseGeneration, machineAt, machineLength, organization, product } = record
    const isKnown = license >= 0
    const owner = `${hex(idOf(4, organization, 0))}/${isKnown ? hex(idOf(2, product, record.productGeneration)) : ''}`
    const tally = `${at - (at % HOUR_MS)}/${owner}/${CODES[code]}`
    checks.set(tally, (checks.get(tally) ?? 0) + 1)
    if (!isKnown) continue
    const machine = hex(record.bytes.subarray(machineAt, machineAt + machineLength))
    const key = `${at - (at % MINUTE_MS)}/${hex(idOf(1, license, licenseGeneration))}/${CODES[code]}/${machine}`
    const sum = activity.get(key) ?? { count: 0, first: at, last: at }
    activity.set(key, { count: sum.count + 1, first: Math.min(sum.first, at), last: Math.max(sum.last, at) })
  }
  return { activity, checks, rules }
}

/** Limits that the records of these tests do not reach, except that of `seen`. */
const AMPLE = { valid: 20_000, machines: 20_000, licenses: 20_000, entries: 20_000, seen: 10, hostnames: 100 }

test.each([1, 2, 3])(
  'returns the same sums as a simple count of the records, in each of several flushes (seed %i)',
  (seed) => {
    const aggregator = new Aggregator(ids, AMPLE)
    for (let flush = 0; flush < 3; flush++) {
      const all = records(seed * 100 + flush, 1_000)
      for (const record of all) aggregator.add(record)
      const { activity, checks, rules } = expected(all)
      const requested: number[] = []
      const batch = aggregator.take((_, entry) => requested.push(entry) > 0)
      expect(
        new Map(
          toActivityRows(batch.activity).map(
            ({ minuteMs, licenseId, code, machineId, count, firstAtMs: first, lastAtMs: last }) => [
              `${minuteMs}/${hex(licenseId)}/${code}/${hex(machineId)}`,
              { count, first, last },
            ],
          ),
        ),
      ).toEqual(activity)
      expect(batch.activity.codes.length).toBe(activity.size)
      expect(
        new Map(
          batch.checks.map(({ hourMs, organizationId, productId, code, count }) => [
            `${hourMs}/${hex(organizationId)}/${hex(productId)}/${code}`,
            count,
          ]),
        ),
      ).toEqual(checks)
      expect(batch.checks.length).toBe(checks.size)
      const counted = new Map<string, number>()
      for (const { id, count } of batch.rules) counted.set(hex(id), (counted.get(hex(id)) ?? 0) + count)
      expect(counted).toEqual(rules)
      const rows = toActivityRows(batch.activity)
      expect(requested).toEqual(rows.flatMap(({ seen }, i) => (seen === true ? [i] : [])))
      const due = rows.filter(({ code, machineId }) => code === 'VALID' && machineId !== null)
      expect(rows.filter(({ seen }) => seen)).toEqual(due.slice(0, 10))
      expect(aggregator.rows).toBe(0)
    }
    expect(aggregator.dropped).toEqual({ activity: 0, analytics: 0, rules: 0, alerts: 0 })
  },
)

test('ignores checks of deleted rows, and keeps the usage from before their deletion', () => {
  const gone = { license: -1, product: -1, rule: -1 }
  const aggregator = new Aggregator(
    {
      ...ids,
      licenseId: (row, generation, out) => generation !== gone.license && ids.licenseId(row, generation, out),
      productId: (row, generation, out) => generation !== gone.product && ids.productId(row, generation, out),
      ruleId: (row, generation, out) => generation !== gone.rule && ids.ruleId(row, generation, out),
    },
    { valid: 100, machines: 100, licenses: 100, entries: 100, seen: 100, hostnames: 100 },
  )
  const record = (generation: number): RecordView => {
    const [any] = records(4, 1)
    if (any === undefined) throw new Error('there is one')
    const rules = { matchedCount: 1, matched: Int32Array.of(1), matchedGenerations: Int32Array.of(generation) }
    return {
      ...any,
      ...rules,
      excluded: false,
      license: 1,
      licenseGeneration: generation,
      product: 1,
      productGeneration: generation,
    }
  }
  aggregator.add(record(1))
  Object.assign(gone, { license: 2, product: 2, rule: 2 })
  aggregator.add(record(2))
  aggregator.add(record(1))
  const { rules, checks, activity } = aggregator.take(() => false)
  expect(rules).toMatchObject([{ id: idOf(3, 1, 1), count: 2 }])
  expect(checks).toMatchObject([{ productId: idOf(2, 1, 1), count: 2 }])
  expect(toActivityRows(activity)).toMatchObject([{ count: 2 }])
  expect(aggregator.dropped).toEqual({ activity: 0, analytics: 0, rules: 0, alerts: 0 })
})

test('leaves a taken batch unchanged until the next one is taken', () => {
  const aggregator = new Aggregator(ids, AMPLE)
  const take = (): ReturnType<typeof aggregator.take> => aggregator.take(() => true)
  for (const record of records(1, 3_000)) aggregator.add(record)
  const first = take()
  const before = toActivityRows(first.activity)
  for (const record of records(2, 3_000)) aggregator.add(record)
  expect(toActivityRows(first.activity)).toEqual(before)
  const next = new Aggregator(ids, AMPLE)
  for (const record of records(2, 3_000)) next.add(record)
  expect(toActivityRows(take().activity)).toEqual(toActivityRows(next.take(() => true).activity))
})

/** Returns the record of a check of the machine with this name. */
function checkOf(organization: number, license: number, machine: string, code: number = CODE.VALID): RecordView {
  const digest = createHash('sha256').update(machine).digest()
  return {
    ...blank,
    code,
    organization,
    license,
    licenseGeneration: 0,
    product: 0,
    productGeneration: 0,
    atMs: START_MS,
    bytes: Buffer.from(machine),
    machineAt: 0,
    machineLength: machine.length,
    machineHash0: machine === '' ? 0 : digest.readInt32LE(0),
    machineHash1: machine === '' ? 0 : digest.readInt32LE(4),
  }
}

/** Returns the machine ids and counts of a batch, in the order of the batch. */
function named({ activity }: ReturnType<Aggregator['take']>): (string | number | null)[][] {
  return toActivityRows(activity).map(({ machineId, count }) => [machineId && Buffer.from(machineId).toString(), count])
}

test('counts checks for the license when machines do not fit, then drops activity, and keeps analytics exact', () => {
  const aggregator = new Aggregator(ids, { valid: 6, machines: 6, licenses: 4, entries: 100, seen: 10, hostnames: 10 })
  for (const license of [1, 2, 3, 4, 5, 6, 7, 4]) aggregator.add(checkOf(0, license, `of ${license}`))
  aggregator.add(checkOf(0, 1, 'of 1'))
  const batch = aggregator.take(() => true)
  expect(named(batch)).toEqual([
    ['of 1', 2],
    ['of 2', 1],
    ['of 3', 1],
    [null, 2],
    [null, 1],
  ])
  expect(aggregator.dropped).toEqual({ activity: 2, analytics: 0, rules: 0, alerts: 0 })
  expect(batch.checks.map(({ count }) => count)).toEqual([9])
})

describe('a flood of checks', () => {
  const LIMITS = { valid: 4_000, machines: 4_000, licenses: 4_000, entries: 4_000, seen: 10, hostnames: 10 }
  const QUIET = 9
  const long = (n: number): string => String(n).padStart(512, 'x')

  test.each([
    ['invented machines of one license', 1, (n: number) => checkOf(1, 1, long(n), CODE.TOO_MANY_MACHINES)],
    ['invented machines of many licenses', 1, (n: number) => checkOf(1, n, long(n), CODE.TOO_MANY_MACHINES)],
    ['valid machines of many licenses', 1, (n: number) => checkOf(1, n, `m ${n}`)],
    ['many organizations', 5, (n: number) => checkOf(n % 5, n, `m ${n}`, n % 2 === 0 ? CODE.VALID : CODE.EXPIRED)],
    ['checks without a machine', 1, (n: number) => checkOf(1, n, '')],
  ] as const)('leaves capacity for each machine of another organization (%s)', (_, __, flood) => {
    const aggregator = new Aggregator(ids, LIMITS)
    for (let n = 0; n < 50_000; n++) aggregator.add(flood(n))
    for (let n = 0; n < 50; n++) {
      aggregator.add(checkOf(QUIET, 1_000_000 + (n % 5), `quiet ${n}`))
      aggregator.add(checkOf(QUIET, 1_000_000 + (n % 5), `quiet ${n}`, CODE.TOO_MANY_MACHINES))
      aggregator.add(checkOf(QUIET, 2_000_000 + n, ''))
    }
    const quiet = named(aggregator.take(() => true)).slice(-150)
    expect(quiet.filter(([machine]) => String(machine).startsWith('quiet'))).toHaveLength(100)
    expect(quiet.filter(([machine, count]) => machine === null && count === 1)).toHaveLength(50)
  })

  test('limits the number of named machines per license and minute across several flushes', () => {
    const aggregator = new Aggregator(ids, LIMITS)
    const machines = new Set<unknown>()
    for (let flush = 0; flush < 20; flush++) {
      for (let n = 0; n < 200; n++) aggregator.add(checkOf(1, 1, `m ${n + flush * 50}`, CODE.TOO_MANY_MACHINES))
      for (const [machine] of named(aggregator.take(() => true))) machines.add(machine)
    }
    machines.delete(null)
    expect(machines.size).toBe(100)
  })

  test('names a machine again in every flush of the minute', () => {
    const aggregator = new Aggregator(ids, LIMITS)
    for (let flush = 0; flush < 5; flush++) {
      for (let n = 0; n < 100; n++) aggregator.add(checkOf(1, 1, `m ${n}`, CODE.EXPIRED))
      expect(named(aggregator.take(() => true)).filter(([machine]) => machine !== null)).toHaveLength(100)
    }
  })

  test('limits the number of named machines per organization and day', () => {
    const budget = new ActivityBudget({ valid: 10, rejected: 10, day: 500, dayLicenses: 500, minute: 1_000 })
    const allowed = (dayMs: number): number => {
      let count = 0
      for (let minute = 0; minute < 100; minute++)
        for (let n = 0; n < 20; n++)
          if (budget.allows(checkOf(1, n, `m ${minute} ${n}`), dayMs + minute * MINUTE_MS, true)) count++
      return count
    }
    const dayMs = Date.UTC(2026, 0, 2)
    expect(allowed(dayMs)).toBe(500)
    expect(allowed(dayMs + 24 * HOUR_MS)).toBe(500)
  })

  test('combines the checks of each license by hour after the daily limit of license entries', () => {
    const budget = new ActivityBudget({ valid: 10, rejected: 10, day: 10, dayLicenses: 100, minute: 1_000 })
    const aggregator = new Aggregator(ids, LIMITS, budget)
    const dayMs = Date.UTC(2026, 0, 3)
    /** Returns the number of recorded checks, and the number of distinct entries. */
    const record = (organization: number, fromMs: number, minutes: number): { checks: number; entries: number } => {
      const entries = new Set<string>()
      let checks = 0
      for (let minute = 0; minute < minutes; minute++) {
        for (let n = 0; n < 10; n++)
          aggregator.add({ ...checkOf(organization, organization * 100 + n, ''), atMs: fromMs + minute * MINUTE_MS })
        for (const row of toActivityRows(aggregator.take(() => true).activity)) {
          entries.add(`${hex(row.licenseId)} ${row.minuteMs}`)
          checks += row.count
        }
      }
      return { checks, entries: entries.size }
    }
    // Each license has an entry in each of the first ten minutes. Its checks of the other fifty minutes are counted in the
    // entry of the hour, which is the entry of the first minute.
    expect(record(1, dayMs, 60)).toEqual({ checks: 600, entries: 100 })
    expect(record(1, dayMs + HOUR_MS, 60)).toEqual({ checks: 600, entries: 10 })
    expect(record(2, dayMs + HOUR_MS, 5)).toEqual({ checks: 50, entries: 50 })
    expect(record(1, dayMs + 24 * HOUR_MS, 5)).toEqual({ checks: 50, entries: 50 })
  })

  test('leaves capacity for the rules and analytics of another organization', () => {
    const aggregator = new Aggregator(ids, LIMITS)
    const matching = (organization: number, n: number): RecordView => ({
      ...checkOf(organization, n, ''),
      product: n,
      matchedCount: 1,
      matched: Int32Array.of(n),
      matchedGenerations: Int32Array.of(0),
    })
    for (let n = 0; n < 5_000; n++) aggregator.add(matching(1, n))
    for (let n = 10_000; n < 10_100; n++) aggregator.add(matching(QUIET, n))
    const { checks, rules } = aggregator.take(() => true)
    expect([rules.slice(-100), checks.slice(-100)]).toMatchObject([
      Array.from({ length: 100 }, (_, n) => ({ id: idOf(3, 10_000 + n, 0) })),
      Array.from({ length: 100 }, (_, n) => ({ productId: idOf(2, 10_000 + n, 0) })),
    ])
  })

  test('counts every check that exceeds the machine limit, for alerts', () => {
    const aggregator = new Aggregator(ids, { ...LIMITS, valid: 10, machines: 10 })
    for (let n = 0; n < 5_000; n++) aggregator.add(checkOf(1, n % 7, long(n), CODE.TOO_MANY_MACHINES))
    for (let n = 0; n < 5_000; n++) aggregator.add(checkOf(2, 10_000 + n, `m ${n}`, CODE.EXPIRED))
    const { overuse } = aggregator.take(() => true)
    expect(aggregator.dropped.activity).toBeGreaterThan(0)
    expect(overuse.map(({ count }) => count).reduce((sum, count) => sum + count)).toBe(5_000)
    expect(overuse).toHaveLength(7)
    expect(aggregator.take(() => true).overuse).toEqual([])
  })
})

test('returns the hostname of a known machine once', () => {
  const aggregator = new Aggregator(ids, {
    valid: 100,
    machines: 100,
    licenses: 100,
    entries: 100,
    seen: 100,
    hostnames: 10,
  })
  const sent = { ...checkOf(1, 1, 'm'), hostname: 'build-7' }
  aggregator.add(sent)
  aggregator.add(sent)
  aggregator.add({ ...checkOf(1, 1, 'new'), hostname: 'recorded with the machine', isNewMachine: true })
  expect(aggregator.take(() => true).hostnames).toEqual([
    { licenseId: idOf(1, 1, 0), machineId: Buffer.from('m'), hostname: 'build-7' },
  ])
})
