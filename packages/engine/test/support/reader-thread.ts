/** A thread that checks the facts of a contested index until it is stopped, and counts impossible verdicts. */

import { workerData } from 'node:worker_threads'

import { createCheck, createVerdict, type SharedIndex } from '../../src/index.ts'
import { IndexReader } from '../../src/read/index-reader.ts'
import { isImpossible } from './contested-index.ts'

export interface ReaderThreadData {
  shared: SharedIndex
  locked: boolean
  /** Four words: the stop flag, and the numbers of checks, impossible verdicts and busy verdicts. */
  counters: Int32Array
}

export const STOP = 0
export const CHECKS = 1
export const IMPOSSIBLE = 2
export const BUSY_VERDICTS = 3

function isThreadData(data: unknown): data is ReaderThreadData {
  return typeof data === 'object' && data !== null && 'shared' in data && 'counters' in data
}

function run({ shared, locked, counters }: ReaderThreadData): void {
  const reader = new IndexReader(shared, { locked })
  const check = createCheck()
  const verdict = createVerdict()
  for (let n = 0; Atomics.load(counters, STOP) === 0; n++) {
    if (isImpossible(reader, check, verdict, n)) Atomics.add(counters, IMPOSSIBLE, 1)
    if (verdict.busy) Atomics.add(counters, BUSY_VERDICTS, 1)
    Atomics.store(counters, CHECKS, n + 1)
  }
}

if (isThreadData(workerData)) run(workerData)
