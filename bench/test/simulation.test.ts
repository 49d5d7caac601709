import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { random } from '@keyward/testkit'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { simulateClaims } from '../src/simulation/claims-model.ts'
import { EventQueue } from '../src/simulation/event-queue.ts'
import { printTable, seeded } from '../src/simulation/markdown-tables.ts'
import { simulatePropagation } from '../src/simulation/propagation-model.ts'

test('runs events in the order of their times, and simultaneous events in the order of their addition', () => {
  const queue = new EventQueue()
  const { int } = random(5)
  const added = Array.from({ length: 2_000 }, (_, order) => ({ atMs: int(300), order }))
  const happened: typeof added = []
  for (const event of added)
    queue.after(event.atMs, () => {
      expect(queue.nowMs).toBe(event.atMs)
      happened.push(event)
    })
  queue.run()
  expect(happened).toEqual(added.toSorted((a, b) => a.atMs - b.atMs || a.order - b.order))
})

describe('propagation', () => {
  const quiet = { cores: 2, readMs: 1, roundTripMs: 10, changesPerSecond: 0.1, seconds: 1_000 }
  const run = (validators: number, more: object = {}): ReturnType<typeof simulatePropagation> =>
    simulatePropagation({ ...quiet, validators, ...more, next: seeded(1) })

  test('propagation to one validator takes the sum of the wake-up, the round trip and the read', () => {
    expect(run(1)).toMatchObject({ p50Ms: 16, p99Ms: 16 })
  })

  test('propagation to many validators takes longer when their reads wait for cores', () => {
    expect(run(10)).toMatchObject({ p50Ms: 20, p99Ms: 20 })
    expect(run(10, { cores: 10 })).toMatchObject({ p50Ms: 16, p99Ms: 16 })
  })

  test('delays a change that is committed during a read until the next read', () => {
    const report = run(1, { changesPerSecond: 50, seconds: 50 })
    expect(report.p99Ms).toBeGreaterThan(16.3)
    expect(report.p99Ms).toBeLessThanOrEqual(17)
  })

  test('relays reduce the load of the server and the p99 of propagation', () => {
    const busy = { changesPerSecond: 100, seconds: 20, roundTripMs: 1 }
    const direct = run(300, busy)
    const relayed = run(300, { ...busy, relays: 3, forwardMs: 0.01 })
    expect(direct.load).toBeGreaterThan(0.95)
    expect(relayed.load).toBeLessThan(0.2)
    expect(relayed.p99Ms).toBeLessThan(direct.p99Ms / 10)
  })
})

describe('claims', () => {
  const model = { validators: 4, cores: 2, statementMs: 0.5, claimMs: 0.05, commitMs: 5, roundTripMs: 1 }
  const run = (claimsPerSecond: number, mostInStatement = 256): ReturnType<typeof simulateClaims> =>
    simulateClaims({ ...model, claimsPerSecond, mostInStatement, seconds: 20, next: seeded(2) })

  test('a single claim takes the sum of the round trip, the statement and the commit', () => {
    expect(run(1).p50Ms).toBeCloseTo(6.55)
  })

  test('a higher rate of claims enlarges the batches and at most doubles the wait', () => {
    const [few, many] = [run(100), run(8_000)]
    expect(many.batch).toBeGreaterThan(few.batch * 5)
    expect(many.p99Ms).toBeLessThan(few.p99Ms * 2)
  })

  test('at 8,000 claims a second without batches, a claim waits more than a second', () => {
    expect(run(8_000, 1).p50Ms).toBeGreaterThan(1_000)
  })
})

test('equal seeds return equal figures, and different seeds different ones', () => {
  const model = { validators: 20, cores: 2, readMs: 0.5, roundTripMs: 1, changesPerSecond: 50, seconds: 20 }
  const [one, two, other] = [4, 4, 5].map((seed) => simulatePropagation({ ...model, next: seeded(seed) }))
  expect(two).toEqual(one)
  expect(other).not.toEqual(one)
})

test('the lab notes contain the tables of the stored result', () => {
  const read = (path: string): string => readFileSync(join(import.meta.dirname, '..', path), 'utf8')
  const table = z.object({ title: z.string(), columns: z.array(z.string()), rows: z.array(z.array(z.string())) })
  const result = z.object({ data: z.object({ tables: z.array(table).min(5) }) })
  const notes = read('notes/scaling.md')
  for (const one of result.parse(JSON.parse(read('results/scaling.json'))).data.tables)
    expect(notes).toContain(printTable(one).trim())
})
