import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

import { expect, test } from 'vitest'

import { BUSY, createCheck, createIndex, createVerdict, openIndex, type SharedIndex } from '../../src/index.ts'
import { Journal } from '../../src/memory/journal.ts'
import { MAX_ATTEMPTS, ReadLock } from '../../src/memory/seqlock.ts'
import { createShared, VERSION } from '../../src/memory/shared-memory.ts'
import { WriteLock } from '../../src/write/write-lock.ts'
import { begin, isImpossible, step } from '../support/contested-index.ts'
import {
  BUSY_VERDICTS,
  CHECKS,
  HELPED,
  IMPOSSIBLE,
  type ReaderThreadData,
  sleep,
  STOP,
} from '../support/reader-thread.ts'
import { worlds } from '../support/worlds.ts'

interface Counts {
  checks: number
  impossible: number
  busy: number
  helped: number
}

const THREADS = 2
const LONG_CHECKS = worlds(100_000, 300_000, 5_000_000)

/** Writes sections until `enough` returns true, while other threads read. With `sleeps`, all threads sometimes sleep during a section. */
async function contest(
  { locked = true, sleeps = false },
  enough: (counts: Counts, sections: number) => boolean,
): Promise<Counts> {
  const writer = createIndex({ reserve: 'large' })
  begin(writer)
  const counters = new Int32Array(new SharedArrayBuffer(20))
  const data: ReaderThreadData = { shared: writer.shared, locked, sleeps, counters }
  const url = new URL('../support/reader-thread.ts', import.meta.url)
  const workers = Array.from({ length: THREADS }, () => new Worker(url, { workerData: data }))
  const failed: unknown[] = []
  for (const worker of workers) worker.on('error', (error) => failed.push(error))
  const ended = Promise.all(workers.map((worker) => once(worker, 'exit')))
  await Promise.all(workers.map((worker) => once(worker, 'online')))
  const counts = (): Counts => ({
    checks: Atomics.load(counters, CHECKS),
    impossible: Atomics.load(counters, IMPOSSIBLE),
    busy: Atomics.load(counters, BUSY_VERDICTS),
    helped: Atomics.load(counters, HELPED),
  })
  const restore = sleeps ? sleepInSections(writer.shared) : () => undefined
  for (let section = 0; !enough(counts(), section) && failed.length === 0; section++) {
    step(writer, section, section % 200 === 0)
    // Allows the event loop to deliver an error of the thread.
    if (section % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  restore()
  Atomics.store(counters, STOP, 1)
  await ended
  expect(failed).toEqual([])
  return counts()
}

/** Lets the writer sleep after it has opened a section, in one of four sections. Returns a function that ends this. */
function sleepInSections({ control }: SharedIndex): () => void {
  const { store } = Atomics
  let sections = 0
  Object.assign(Atomics, {
    store(words: Int32Array, at: number, value: number): number {
      const stored = store(words, at, value)
      const isOpen = words.buffer === control && at === VERSION && value % 2 === 1
      if (isOpen && ++sections % 4 === 0) sleep(0.2 + (sections % 3))
      return stored
    },
  })
  return () => void Object.assign(Atomics, { store })
}

test('a reader in another thread never sees part of a write section', async () => {
  const counts = await contest({}, ({ checks }, sections) => checks >= 50_000 && sections >= 20_000)
  expect(counts.impossible).toBe(0)
  expect(counts.busy).toBe(0)
}, 120_000)

test(`readers complete the sections of a writer that sleeps, in ${LONG_CHECKS} checks`, async () => {
  const counts = await contest({ sleeps: true }, ({ checks, helped }) => checks >= LONG_CHECKS && helped >= 200)
  expect(counts.impossible).toBe(0)
  expect(counts.busy).toBe(0)
}, 1_200_000)

test('a reader without the lock sees part of a write section, so the test above can fail', async () => {
  const counts = await contest({ locked: false }, ({ impossible }, sections) => impossible > 0 || sections >= 1_000_000)
  expect(counts.impossible).toBeGreaterThan(0)
}, 120_000)

test('the facts of the contested index hold between write sections', () => {
  const writer = createIndex({ reserve: 'small' })
  begin(writer)
  const reader = openIndex(writer.shared)
  const check = createCheck()
  const verdict = createVerdict()
  for (let n = 0; n < 100; n++) {
    step(writer, n, n % 2 === 0)
    for (let fact = 0; fact < 4; fact++) expect(isImpossible(reader, check, verdict, fact)).toBe(false)
  }
})

test('reports a change when a section began, was open or ended during the read', () => {
  const shared = createShared([1, 2, 3, 4], 'small')
  const [control, journal] = [new Int32Array(shared.control), new Journal(shared)]
  const [reading, writing] = [new ReadLock(control, journal, true), new WriteLock(control, journal, {})]
  const before = reading.begin(0)
  expect(before % 2).toBe(0)
  expect(reading.unchanged(before)).toBe(true)
  writing.section(() => {
    expect(reading.begin(0) % 2).toBe(1)
    expect(reading.unchanged(before)).toBe(false)
  }, true)
  expect(reading.unchanged(before)).toBe(false)
  expect(reading.unchanged(reading.begin(0))).toBe(true)
})

test('readers return busy when a section never ends', () => {
  const writer = createIndex({ reserve: 'small' })
  begin(writer)
  const reader = openIndex(writer.shared)
  const verdict = createVerdict()
  const version = new Int32Array(writer.shared.control)
  version[VERSION] = 1
  reader.decide(createCheck(), 0, verdict)
  expect(verdict.busy).toBe(true)
  expect(reader.findCredential(new Uint8Array(32))).toBe(BUSY)
  expect(reader.findLicense(1, 0, new Uint8Array(3), 3, new Uint8Array(16))).toBe(BUSY)
  version[VERSION] = 2
  reader.decide(createCheck(), 0, verdict)
  expect(verdict.busy).toBe(false)
  expect(MAX_ATTEMPTS).toBe(1000)
})
