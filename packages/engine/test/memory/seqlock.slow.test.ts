import { once } from 'node:events'
import { Worker } from 'node:worker_threads'

import { expect, test } from 'vitest'

import { BUSY, createCheck, createIndex, createVerdict, openIndex } from '../../src/index.ts'
import { MAX_ATTEMPTS, ReadLock, WriteLock } from '../../src/memory/seqlock.ts'
import { VERSION } from '../../src/memory/shared-memory.ts'
import { begin, isImpossible, step } from '../support/contested-index.ts'
import { BUSY_VERDICTS, CHECKS, IMPOSSIBLE, type ReaderThreadData, STOP } from '../support/reader-thread.ts'

interface Counts {
  checks: number
  impossible: number
  busy: number
}

/** Writes sections until `enough` returns true, while another thread reads. */
async function contest(locked: boolean, enough: (counts: Counts, sections: number) => boolean): Promise<Counts> {
  const writer = createIndex({ reserve: 'large' })
  begin(writer)
  const counters = new Int32Array(new SharedArrayBuffer(16))
  const data: ReaderThreadData = { shared: writer.shared, locked, counters }
  const worker = new Worker(new URL('../support/reader-thread.ts', import.meta.url), { workerData: data })
  const failed: unknown[] = []
  worker.on('error', (error) => failed.push(error))
  await once(worker, 'online')
  const counts = (): Counts => ({
    checks: Atomics.load(counters, CHECKS),
    impossible: Atomics.load(counters, IMPOSSIBLE),
    busy: Atomics.load(counters, BUSY_VERDICTS),
  })
  for (let section = 0; !enough(counts(), section) && failed.length === 0; section++) {
    step(writer, section, section % 200 === 0)
    // Allows the event loop to deliver an error of the thread.
    if (section % 1000 === 0) await new Promise((resolve) => setImmediate(resolve))
  }
  Atomics.store(counters, STOP, 1)
  await once(worker, 'exit')
  expect(failed).toEqual([])
  return counts()
}

test('a reader in another thread never sees part of a write section', async () => {
  const counts = await contest(true, ({ checks }, sections) => checks >= 50_000 && sections >= 20_000)
  expect(counts.impossible).toBe(0)
  expect(counts.busy).toBe(0)
}, 120_000)

test('a reader without the lock sees part of a write section, so the test above can fail', async () => {
  const counts = await contest(false, ({ impossible }, sections) => impossible > 0 || sections >= 1_000_000)
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
  const control = new Int32Array(new SharedArrayBuffer(64))
  const [reading, writing] = [new ReadLock(control, true), new WriteLock(control)]
  const before = reading.begin(0)
  expect(before % 2).toBe(0)
  expect(reading.unchanged(before)).toBe(true)
  writing.section(() => {
    expect(reading.begin(0) % 2).toBe(1)
    expect(reading.unchanged(before)).toBe(false)
  })
  expect(reading.unchanged(before)).toBe(false)
  expect(reading.unchanged(reading.begin(0))).toBe(true)
})

test('a section that throws still ends', () => {
  const control = new Int32Array(new SharedArrayBuffer(64))
  const lock = new WriteLock(control)
  expect(() =>
    lock.section(() => {
      expect(control[VERSION]).toBe(1)
      throw new Error('in the middle')
    }),
  ).toThrow('in the middle')
  expect(control[VERSION]).toBe(2)
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
