import type { ReleaseAnswer } from '@keyward/database'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { type Release, ReleaseQueue } from '../../src/slots/release-queue.ts'

const HOSTILE = 1
const QUIET = 2

/** The statements so far, with their releases. */
let batches: Release[][]
/** The machine ids whose license is locked. */
let locked: Set<string>
let queue: ReleaseQueue

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] })
  batches = []
  locked = new Set()
  queue = new ReleaseQueue((releases) => {
    batches.push([...releases])
    return Promise.resolve(releases.map(answerTo))
  })
})
afterEach(() => {
  queue.close()
  vi.useRealTimers()
})

function answerTo({ machineId, isKnown }: Release): ReleaseAnswer {
  if (locked.has(nameOf(machineId))) return { outcome: 'busy', used: null, xid: null }
  return isKnown ? { outcome: 'released', used: 0, xid: '7' } : { outcome: 'unknown', used: null, xid: null }
}

const nameOf = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const namesOf = (releases: readonly Release[]): string[] => releases.map(({ machineId }) => nameOf(machineId))

/** Adds a release. Returns an array that receives its outcome. */
function add(organization: number, license: string, machine: string, isKnown: boolean): (string | null)[] {
  const outcomes: (string | null)[] = []
  const licenseId = Buffer.from(license.padEnd(16))
  queue.add({ organization, licenseId, machineId: Buffer.from(machine), ref: null, isKnown }, (result) =>
    outcomes.push(result?.outcome ?? null),
  )
  return outcomes
}

/** Adds ten releases of invented machines of one license every millisecond, for `ms` milliseconds. Returns their outcomes. */
async function flood(ms: number): Promise<(string | null)[][]> {
  const outcomes: (string | null)[][] = []
  for (let i = 0; i < ms; i++) {
    for (let n = 0; n < 10; n++) outcomes.push(add(HOSTILE, 'one license', `invented ${i} ${n}`, false))
    await vi.advanceTimersByTimeAsync(1)
  }
  return outcomes
}

test('sends few statements for a flood of invented machines of a license', async () => {
  const outcomes = await flood(10_000)
  // The license may take part in ten batches at once, then in five a second.
  expect(batches.length).toBeLessThanOrEqual(10 + 10 * 5 + 1)
  expect(Math.max(...batches.map((batch) => batch.length))).toBeLessThanOrEqual(16)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(outcomes.every((outcome) => outcome.length === 1)).toBe(true)
  expect(new Set(outcomes.flat())).toEqual(new Set(['unknown', null]))
})

test('executes the release of an organization in the next batch during a flood from another organization', async () => {
  for (let license = 0; license < 2_000; license++) add(HOSTILE, `license ${license}`, 'm', true)
  const quiet = add(QUIET, 'quiet', 'm', true)
  await vi.advanceTimersByTimeAsync(2)
  expect(quiet).toEqual(['released'])
  expect(batches.map((batch) => batch.length)).toEqual([65])
})

test('limits the waiting releases of an organization, and keeps capacity for other organizations', async () => {
  const outcomes = Array.from({ length: 2_000 }, (_, i) => add(HOSTILE, `license ${i}`, 'm', true))
  expect(outcomes.filter(([outcome]) => outcome === null)).toHaveLength(1_000)
  expect(queue.size).toBe(1_000)
  const quiet = add(QUIET, 'quiet', 'm', true)
  await vi.advanceTimersByTimeAsync(5_000)
  expect(quiet).toEqual(['released'])
  expect(outcomes.every((outcome) => outcome.length === 1)).toBe(true)
})

test('executes releases of machines with slots before those of invented machines', async () => {
  for (let i = 0; i < 100; i++) add(HOSTILE, 'license', `invented ${i}`, false)
  const known = add(HOSTILE, 'license', 'holder', true)
  await vi.advanceTimersByTimeAsync(2)
  expect(known).toEqual(['released'])
  expect(namesOf(batches[0] ?? [])).toHaveLength(17)
})

test('executes equal releases once, and returns released only to the first caller', async () => {
  const both = [add(QUIET, 'license', 'm', true), add(QUIET, 'license', 'm', true)]
  await vi.advanceTimersByTimeAsync(2)
  expect(batches.map(namesOf)).toEqual([['m']])
  expect(both).toEqual([['released'], ['unknown']])
})

test('retries the release of a locked license until its time limit', async () => {
  locked.add('m')
  const first = add(QUIET, 'license', 'm', true)
  const other = add(QUIET, 'other', 'free', true)
  await vi.advanceTimersByTimeAsync(2)
  expect([first, other]).toEqual([[], ['released']])
  await vi.advanceTimersByTimeAsync(100)
  locked.clear()
  await vi.advanceTimersByTimeAsync(200)
  expect(first).toEqual(['released'])
  locked.add('m')
  const second = add(QUIET, 'license', 'm', true)
  await vi.advanceTimersByTimeAsync(3_000)
  expect(second).toEqual([null])
})

test('bounds releases by ref as those of unknown machines, and combines them with no machine id', async () => {
  const licenseId = Buffer.from('license'.padEnd(16))
  const outcomes: (string | null)[] = []
  const addRef = (ref: string): void =>
    queue.add({ organization: QUIET, licenseId, machineId: new Uint8Array(), ref, isKnown: false }, (result) =>
      outcomes.push(result?.outcome ?? null),
    )
  const known = ['/ref 0', '\u2192ref 0', 'ref 0'].map((machine) => add(QUIET, 'license', machine, true))
  for (let i = 0; i < 17; i++) addRef(`ref ${i}`)
  expect(outcomes).toEqual([null])
  await vi.advanceTimersByTimeAsync(2)
  expect(batches[0]).toHaveLength(known.length + 16)
  expect(known).toEqual([['released'], ['released'], ['released']])
})

test('ends every release undecided when the statement fails or the queue closes', async () => {
  const failing = new ReleaseQueue(() => Promise.reject(new Error('no connection')))
  const outcomes: unknown[] = []
  const licenseId = new Uint8Array(16)
  const release = { organization: QUIET, licenseId, machineId: Buffer.from('m'), ref: null, isKnown: true }
  failing.add(release, (result) => outcomes.push(result))
  await vi.advanceTimersByTimeAsync(2)
  expect(outcomes).toEqual([null])
  failing.add(release, (result) => outcomes.push(result))
  failing.close()
  expect(outcomes).toEqual([null, null])
})

test('executes one batch of an organization at a time, without delaying other organizations', async () => {
  const executing: { releases: readonly Release[]; end: () => void }[] = []
  const slow = new ReleaseQueue(
    (releases) =>
      new Promise((resolve) => executing.push({ releases, end: () => resolve(releases.map((one) => answerTo(one))) })),
  )
  const outcomes: string[] = []
  const release = (organization: number, machine: string): void =>
    slow.add(
      {
        organization,
        licenseId: Buffer.from(machine.padEnd(16)),
        machineId: Buffer.from(machine),
        ref: null,
        isKnown: true,
      },
      (result) => outcomes.push(`${machine} ${result?.outcome}`),
    )
  release(HOSTILE, 'first')
  await vi.advanceTimersByTimeAsync(2)
  release(HOSTILE, 'second')
  await vi.advanceTimersByTimeAsync(200)
  expect(executing.map(({ releases }) => namesOf(releases))).toEqual([['first']])
  release(QUIET, 'quiet')
  await vi.advanceTimersByTimeAsync(2)
  expect(executing.map(({ releases }) => namesOf(releases))).toEqual([['first'], ['quiet']])
  executing[1]?.end()
  await vi.advanceTimersByTimeAsync(1)
  expect(outcomes).toEqual(['quiet released'])
  executing[0]?.end()
  await vi.advanceTimersByTimeAsync(2)
  expect(executing.map(({ releases }) => namesOf(releases))).toEqual([['first'], ['quiet'], ['second']])
  slow.close()
})
