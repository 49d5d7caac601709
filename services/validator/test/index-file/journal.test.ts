import { randomBytes } from 'node:crypto'

import { beforeEach, expect, test } from 'vitest'

import { Journal, type JournalDisk } from '../../src/index-file/journal.ts'

const KEY = randomBytes(32)
const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)

/** The segments on the disk. */
let files: Map<number, Buffer>
/** The number of appends so far. */
let appends: number
let errors: unknown[]
let isFull: boolean
let isReadOnly: boolean
/** The number of operations before the one that fails. */
let goodOperations: number

/** Fails the operation if it is the one to fail. `half` stores a part of it. */
function operate(half: () => void): void {
  if (goodOperations-- > 0) return
  goodOperations = Infinity
  half()
  throw new Error('input/output error')
}

const disk: JournalDisk = {
  list: () => [...files.keys()],
  read: (segment) => files.get(segment)!,
  append: async (segment, bytes) => {
    await Promise.resolve()
    const before = files.get(segment) ?? Buffer.alloc(0)
    operate(() => files.set(segment, Buffer.concat([before, bytes.subarray(0, bytes.length >> 1)])))
    // A full disk stores a part of the bytes.
    files.set(segment, Buffer.concat([before, isFull ? bytes.subarray(0, bytes.length >> 1) : bytes]))
    appends++
    if (isFull || isReadOnly) throw new Error('no space left on device')
  },
  removeBefore: async (segment) => {
    await Promise.resolve()
    if (isReadOnly) throw new Error('read-only file system')
    operate(() => files.delete(Math.min(...files.keys())))
    for (const one of files.keys()) if (one < segment) files.delete(one)
  },
}

beforeEach(() => {
  files = new Map()
  errors = []
  appends = 0
  isFull = isReadOnly = false
  goodOperations = Infinity
})

const open = (): Journal => new Journal(disk, KEY, (error) => errors.push(error))

/** Commits the deletion of license `n`, with the snapshot `n`. */
function change(journal: Journal, n: number): Promise<boolean> {
  journal.applied([{ entity: 'license', id: id(n), row: null }], [])
  return journal.commit({ identity: 'i', snapshot: `${n}:${n}:`, currentAtMs: n })
}

/** Returns the licenses that a new validator reads from the journal of a file that names `segment`, or null. */
function restored(segment: number | null): number[] | null {
  const records = open().restore(segment)
  return records?.flatMap(({ reads }) => reads.flatMap(({ changes }) => changes.map((one) => idOf(one)))) ?? null
}

function idOf(one: object): number {
  return 'id' in one && one.id instanceof Uint8Array ? one.id[0]! : -1
}

test('restores the changes since the file, in order, across restarts', async () => {
  const first = open()
  const segment = await first.begin()
  expect([await change(first, 1), await change(first, 2)]).toEqual([true, true])
  const second = open()
  expect(second.restore(segment)?.at(-1)).toMatchObject({ identity: 'i', snapshot: '2:2:', currentAtMs: 2 })
  await change(second, 3)
  expect(restored(segment)).toEqual([1, 2, 3])
})

test('removes the segments before a completed file, and restores neither an older file nor one without a segment', async () => {
  const journal = open()
  const older = await journal.begin()
  await change(journal, 1)
  const segment = await journal.begin()
  await change(journal, 2) // while the file is being written
  expect(restored(older)).toEqual([1, 2])
  await journal.completed(segment)
  expect([restored(segment), restored(older), restored(null)]).toEqual([[2], null, null])
})

test('never uses the number of a removed segment again, which an earlier file may name', async () => {
  const journal = open()
  const segment = await journal.begin()
  await change(journal, 1)
  journal.interrupt()
  await change(journal, 2)
  expect(files.size).toBe(0)
  const next = open()
  const other = await next.begin()
  await change(next, 3)
  expect([restored(segment), restored(other)]).toEqual([null, [3]])
})

test('writes the changes of several commits at once', async () => {
  const journal = open()
  const segment = await journal.begin()
  await Promise.all([1, 2, 3, 4].map((n) => change(journal, n)))
  expect(appends).toBeLessThanOrEqual(2)
  expect(restored(segment)).toEqual([1, 2, 3, 4])
})

test('ignores a torn record at the end, and rejects a damaged record before the end', async () => {
  const journal = open()
  const segment = (await journal.begin())!
  await change(journal, 1)
  const acknowledged = files.get(segment)!.length
  await change(journal, 2)
  const whole = files.get(segment)!
  for (let length = acknowledged; length < whole.length; length++) {
    files = new Map([[segment, whole.subarray(0, length)]])
    expect(restored(segment)).toEqual([1])
    files = new Map([[segment, Buffer.concat([whole.subarray(0, length), Buffer.alloc(whole.length - length)])]])
    expect(restored(segment)?.[0]).toBe(1)
  }
  const damaged = Buffer.from(whole)
  damaged[acknowledged >> 1]! ^= 1
  files = new Map([[segment, damaged]])
  expect(restored(segment)).toBeNull()
})

test('acknowledges changes on a full disk after it has removed the journal', async () => {
  const journal = open()
  const segment = await journal.begin()
  await change(journal, 1)
  isFull = true
  expect([await change(journal, 2), journal.isRecording, files.size, errors.length]).toEqual([true, false, 0, 1])
  expect(await change(journal, 3)).toBe(true)
  expect(restored(segment)).toBeNull()
  isFull = false
  const next = await journal.begin()
  await change(journal, 4)
  expect([restored(next), restored(segment)]).toEqual([[4], null])
})

test('acknowledges nothing while it can neither append nor remove the journal', async () => {
  const journal = open()
  const segment = await journal.begin()
  await change(journal, 1)
  isReadOnly = true
  expect([await change(journal, 2), await change(journal, 3)]).toEqual([false, false])
  isReadOnly = false
  expect(await change(journal, 4)).toBe(true)
  expect(restored(segment)).toBeNull()
})

test('is interrupted by a read of more than 2,000 changes, which would occupy the main thread', async () => {
  const journal = open()
  const segment = await journal.begin()
  const deletion = { entity: 'license', id: id(1), row: null } as const
  journal.applied(
    Array.from({ length: 2_001 }, () => deletion),
    [],
  )
  expect(await journal.commit({ identity: 'i', snapshot: '1:1:', currentAtMs: 1 })).toBe(true)
  expect([journal.isRecording, restored(segment)]).toEqual([false, null])
})

test('makes a file incomplete that is completed after an interruption', async () => {
  const journal = open()
  const segment = await journal.begin()
  journal.interrupt()
  expect(await change(journal, 1)).toBe(true)
  await journal.completed(segment)
  expect([restored(segment), journal.isRecording]).toEqual([null, false])
})

test('restores every acknowledged change or declares the file incomplete, whichever disk operation failed', async () => {
  const outcomes = new Set<string>()
  for (let n = 0; ; n++) {
    files = new Map()
    goodOperations = Infinity
    const journal = open()
    goodOperations = n
    // The segment that the last completed file names, and the changes that the file contains.
    let file: { segment: number; changes: number[] } | null = null
    const acknowledged: number[] = []
    for (let round = 0; round < 3; round++) {
      const contained = [0, 1, 2].slice(0, round).flatMap((one) => [3 * one, 3 * one + 1, 3 * one + 2])
      const segment = await journal.begin()
      for (let i = 0; i < 3; i++) if (await change(journal, 3 * round + i)) acknowledged.push(3 * round + i)
      if (segment === null) continue
      await journal.completed(segment)
      file = { segment, changes: contained }
    }
    const hasFailed = goodOperations === Infinity
    const rest = file === null ? null : restored(file.segment)
    const known = rest === null ? null : [...file!.changes, ...rest]
    expect([n, acknowledged.filter((one) => known?.includes(one) === false)]).toEqual([n, []])
    outcomes.add(known === null ? 'incomplete' : 'complete')
    if (!hasFailed) break
  }
  expect(outcomes).toEqual(new Set(['complete', 'incomplete']))
})
