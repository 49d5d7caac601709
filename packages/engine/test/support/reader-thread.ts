/** A thread that checks the facts of a contested index until it is stopped, and counts impossible verdicts. */

import { workerData } from 'node:worker_threads'

import { createCheck, createVerdict, type SharedIndex } from '../../src/index.ts'
import { Journal } from '../../src/memory/journal.ts'
import { IndexReader } from '../../src/read/index-reader.ts'
import { isImpossible } from './contested-index.ts'

export interface ReaderThreadData {
  shared: SharedIndex
  locked: boolean
  /** Whether the thread sometimes sleeps while it completes a write section. */
  sleeps: boolean
  /** Five words: the stop flag, and the numbers of checks, impossible verdicts, busy verdicts and completed sections. */
  counters: Int32Array
}

export const STOP = 0
export const CHECKS = 1
export const IMPOSSIBLE = 2
export const BUSY_VERDICTS = 3
export const HELPED = 4

function isThreadData(data: unknown): data is ReaderThreadData {
  return typeof data === 'object' && data !== null && 'shared' in data && 'counters' in data
}

/** Counts the sections that this thread completes, and sleeps during some of them. */
function watchHelp(counters: Int32Array, sleeps: boolean): void {
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const { help } = Journal.prototype
  Journal.prototype.help = function (version) {
    const hasHelped = help.call(this, version)
    if (hasHelped) Atomics.add(counters, HELPED, 1)
    return hasHelped
  }
  if (!sleeps) return
  const { store } = Atomics
  let stores = 0
  // A thread that reads stores only to its own line, which is not shared, and to the journal.
  Object.assign(Atomics, {
    store(words: Int32Array, at: number, value: number): number {
      if (words.buffer instanceof SharedArrayBuffer && ++stores % 20 === 0) sleep(1 + (stores % 5))
      return store(words, at, value)
    },
  })
}

export function sleep(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

function run({ shared, locked, sleeps, counters }: ReaderThreadData): void {
  watchHelp(counters, sleeps)
  const reader = new IndexReader(shared, { locked })
  const check = createCheck()
  const verdict = createVerdict()
  for (let n = 0; Atomics.load(counters, STOP) === 0; n++) {
    if (isImpossible(reader, check, verdict, n)) Atomics.add(counters, IMPOSSIBLE, 1)
    if (verdict.busy) Atomics.add(counters, BUSY_VERDICTS, 1)
    Atomics.add(counters, CHECKS, 1)
  }
}

if (isThreadData(workerData)) run(workerData)
