import { setTimeout as sleep } from 'node:timers/promises'

import type { ClaimAnswer } from '@keyward/database'
import { beforeEach, expect, test } from 'vitest'

import type { Claim } from '../../src/slots/claim-queue.ts'
import { NewMachines } from '../../src/usage/new-machines.ts'

const HOSTILE = 1
const QUIET = 2
const LICENSE = new Uint8Array(16)

let batches: string[][]
let fails: boolean
/** The names of machines whose licenses are locked for calls that do not wait. */
let locked: Set<string>
let machines: NewMachines

beforeEach(() => {
  batches = []
  fails = false
  locked = new Set()
  machines = new NewMachines({
    recordMachines: (claims, waits) => {
      batches.push(claims.map(nameOf))
      if (fails) return Promise.reject(new Error('no connection'))
      const answer = (claim: Claim) => (!waits && locked.has(nameOf(claim)) ? busy() : recorded())
      return Promise.resolve(claims.map(answer))
    },
    onMachine: () => undefined,
  })
})

const nameOf = ({ machineId }: Claim): string => Buffer.from(machineId).toString()
const recorded = (): ClaimAnswer => ({
  outcome: 'recorded',
  used: 1,
  max: null,
  xid: '7',
  expiresAtMs: Infinity,
  leaseSeconds: null,
})
const busy = (): ClaimAnswer => ({ ...recorded(), outcome: 'busy', used: null })
const add = (organization: number, name: string): void => machines.add(organization, LICENSE, Buffer.from(name), null)

test('keeps capacity for other organizations during a flood, and writes their machines in the next batch', async () => {
  for (let i = 0; i < 30_000; i++) add(HOSTILE, `hostile ${i}`)
  expect([machines.waiting, machines.dropped]).toEqual([10_000, 20_000])
  for (let i = 0; i < 90; i++) add(QUIET, `quiet ${i}`)
  expect([machines.waiting, machines.dropped]).toEqual([10_090, 20_000])
  await machines.flush()
  expect(batches[0]?.filter((name) => name.startsWith('quiet'))).toHaveLength(90)
  expect(batches.flat()).toHaveLength(1_090)
  for (let n = 0; n < 9; n++) await machines.flush()
  expect(batches.flat()).toHaveLength(10_090)
  expect(new Set(batches.flat()).size).toBe(10_090)
  expect(machines.waiting).toBe(0)
})

test('refuses the machines of a flood before they are copied, and accepts them again after a flush', async () => {
  for (let i = 0; i < 10_000; i++) add(HOSTILE, `m ${i}`)
  expect([machines.refuses(HOSTILE), machines.refuses(QUIET), machines.dropped]).toEqual([true, false, 1])
  await machines.flush()
  expect([machines.refuses(HOSTILE), machines.dropped]).toEqual([false, 1])
})

test('pauses after a full batch for as long as the batch took', async () => {
  const times: number[] = []
  machines = new NewMachines({
    recordMachines: async (claims) => {
      times.push(performance.now())
      await sleep(30)
      times.push(performance.now())
      return claims.map(recorded)
    },
    onMachine: () => undefined,
  })
  for (let i = 0; i < 201; i++) add(QUIET, `m ${i}`)
  await machines.flush()
  const [start, end, next] = times
  // A timer may end up to a millisecond early.
  expect(next! - end!).toBeGreaterThan(end! - start! - 2)
})

test('writes the given machines before all other machines, and each machine once', async () => {
  for (let i = 0; i < 1_000; i++) add(HOSTILE, `m ${i}`)
  const both = [999, 5, 5_000].map((i) => ({ licenseId: LICENSE, machineId: Buffer.from(`m ${i}`) }))
  const now = machines.writeNow(both)
  const all = machines.flush()
  await now
  expect(both.map(({ machineId }) => machines.isWaiting(LICENSE, machineId))).toEqual([false, false, false])
  await all
  expect(batches[0]).toEqual(['m 999', 'm 5'])
  expect(batches.flat()).toHaveLength(1_000)
})

test('waits for a batch in progress that contains the machine', async () => {
  add(QUIET, 'm')
  const flush = machines.flush()
  await machines.writeNow([{ licenseId: LICENSE, machineId: Buffer.from('m') }])
  expect(batches).toEqual([['m']])
  await flush
})

test('keeps the machines of a failed batch for the next flush', async () => {
  for (let i = 0; i < 10; i++) add(QUIET, `m ${i}`)
  fails = true
  await expect(machines.flush()).rejects.toThrow('no connection')
  await expect(machines.writeNow([{ licenseId: LICENSE, machineId: Buffer.from('m 3') }])).rejects.toThrow('no')
  expect(machines.waiting).toBe(10)
  fails = false
  batches = []
  await machines.flush()
  expect(batches.flat().toSorted()).toEqual(Array.from({ length: 10 }, (_, i) => `m ${i}`))
  expect(machines.waiting).toBe(0)
})

test('keeps the machines of a locked license for the next flush', async () => {
  for (let i = 0; i < 500; i++) add(QUIET, `m ${i}`)
  locked = new Set(['m 3', 'm 499'])
  await machines.flush()
  expect([batches.flat().length, machines.waiting]).toEqual([500, 2])
  batches = []
  await machines.flush()
  expect([batches, machines.waiting]).toEqual([[['m 3', 'm 499']], 2])
  await machines.writeNow([{ licenseId: LICENSE, machineId: Buffer.from('m 3') }])
  locked.clear()
  batches = []
  await machines.flush()
  expect([batches, machines.waiting]).toEqual([[['m 499']], 0])
})
