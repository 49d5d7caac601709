/**
 * Tests the states that readers see between two write sections of one batch. The difference between two random worlds
 * is applied in small sections. After every section, random checks are compared with the naive model's verdicts in both
 * worlds.
 */

import { expect, test } from 'vitest'

import {
  type Change,
  CODE,
  createCheck,
  createCredentialView,
  createVerdict,
  type IndexReader,
  type IndexStats,
  type IndexWriter,
  type Rejected,
} from '../../src/index.ts'
import { changesBetween } from '../support/changes-between.ts'
import { createCheckedIndex, openCheckedIndex } from '../support/checked.ts'
import { decideNow, differences, fillCheck } from '../support/comparison.ts'
import { History, NOW } from '../support/history.ts'
import { hex, type NaiveCheck, naiveDecide } from '../support/naive.ts'
import { worlds } from '../support/worlds.ts'

const WORLDS = worlds(50, 200, 5_000)
const FIRST = Number(process.env['KEYWARD_SEED'] ?? 1)
const CHECKS = 40

interface Story {
  world: History
  before: History
  /** The difference between the two worlds, with each row once and in random order. */
  changes: Change[]
  checks: { check: NaiveCheck; secretHash: Uint8Array | null; nowMs: number }[]
}

/** Returns a world, an earlier state of it, and random checks for both. */
function storyOf(seed: number): Story {
  const world = new History(seed, seed % 2 === 0)
  const { random } = world
  for (let i = 0; i < 60; i++) world.step()
  const before = world.copy()
  const steps = 5 + random.int(60)
  for (let i = 0; i < steps; i++) world.step()
  const changes = random.shuffle(changesBetween(before, world))
  const credentials = [...before.credentials, ...world.credentials]
  const checks = Array.from({ length: CHECKS }, (_, i) => {
    const check = (i % 2 === 0 ? before : world).randomCheck(random)
    const own = credentials.filter((one) => hex(one.organizationId) === hex(check.organizationId))
    const secretHash = own.length === 0 || random.chance(0.7) ? null : random.pick(own).secretHash
    return { check, secretHash, nowMs: NOW + random.int(3) - 1 }
  })
  return { world, before, changes, checks }
}

/** Returns whether the check is VALID in the naive model and its credential, if it has one, is valid. */
function naiveAllows(world: History, { check, secretHash, nowMs }: Story['checks'][number]): boolean {
  if (secretHash !== null) {
    const credential = world.credentials.find((one) => hex(one.secretHash) === hex(secretHash))
    if (credential === undefined || credential.expiresAtMs <= nowMs) return false
    return naiveDecide(world, { ...check, productId: credential.productId }, nowMs).code === 'VALID'
  }
  return naiveDecide(world, check, nowMs).code === 'VALID'
}

function allows(reader: IndexReader, { check, secretHash, nowMs }: Story['checks'][number]): boolean {
  const filled = createCheck()
  fillCheck(reader, check, filled)
  if (secretHash !== null) {
    const view = createCredentialView()
    const row = reader.findCredential(secretHash)
    if (row < 0 || !reader.credential(row, view) || view.expiresAtMs <= nowMs) return false
    filled.product = view.product
  }
  const verdict = createVerdict()
  reader.decide(filled, nowMs, verdict)
  return verdict.code === CODE.VALID
}

/** The way in which the story's changes are applied, and the limits of a section. */
interface Way {
  rows: number
  atomicRows: number
  via: 'batch' | 'reload' | 'pages'
}

interface Outcome {
  rejected: Rejected[]
  rows: IndexStats['rows']
  /** The row counts of an index that was built from the new world alone. */
  expectedRows: IndexStats['rows']
}

const WAYS = ['batch', 'reload', 'pages'] as const

/** Applies changes as pages of one entity each, in the order of a change that is too large for memory. */
function applyInPages(writer: IndexWriter, changes: readonly Change[]): Rejected[] {
  const rejected: Rejected[] = []
  const isRemoval = (change: Change): boolean => (change.entity === 'machine' ? !change.held : change.row === null)
  const page = (entity: Change['entity'], step: 'apply' | 'restrict' | 'loosen', which?: boolean): void => {
    const rows = changes.filter((one) => one.entity === entity && (which === undefined || isRemoval(one) === which))
    for (let from = 0; from < rows.length; from += 3) {
      rejected.push(...writer.applyPage(rows.slice(from, from + 3), step))
    }
  }
  for (const entity of ['organization', 'product', 'customer'] as const) page(entity, 'apply', false)
  page('credential', 'restrict')
  page('license', 'restrict', false)
  page('rule', 'restrict')
  page('machine', 'restrict', true)
  page('license', 'apply')
  page('rule', 'loosen')
  page('credential', 'loosen')
  page('machine', 'apply')
  writer.finishPages()
  for (const entity of ['customer', 'product', 'organization'] as const) page(entity, 'apply', true)
  return rejected
}

/** Applies the story's changes, and calls `onState` after every write section. */
function play({ before, world, changes }: Story, way: Way, onState: (reader: IndexReader) => void): Outcome {
  let watch = (): void => undefined
  const writer = createCheckedIndex({ reserve: 'tiny', sections: way, onSection: () => watch() })
  const reader = openCheckedIndex(writer.shared)
  const rejected = writer.apply(before.snapshot())
  watch = () => onState(reader)
  if (way.via === 'batch') rejected.push(...writer.apply(changes))
  else if (way.via === 'pages') rejected.push(...applyInPages(writer, changes))
  else {
    writer.beginReload()
    rejected.push(...writer.receive(world.snapshot()), ...writer.endReload())
  }
  const compiled = createCheckedIndex({ reserve: 'tiny' })
  compiled.apply(world.snapshot())
  return { rejected, rows: writer.stats().rows, expectedRows: compiled.stats().rows }
}

test('no state between two write sections allows a check that both the old and the new state reject', () => {
  let states = 0
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const story = storyOf(seed)
    const { before, world, checks } = story
    const rejectedByBoth = checks.filter((one) => !naiveAllows(before, one) && !naiveAllows(world, one))
    const found: unknown[] = []
    const way = { rows: 1 + (seed % 4), atomicRows: seed % 5, via: WAYS[seed % 3]! }
    const end = play(story, way, (reader) => {
      states++
      for (const one of rejectedByBoth) if (allows(reader, one)) found.push(one)
    })
    expect(found, `seed ${seed}`).toEqual([])
    expect(end.rejected, `seed ${seed}`).toEqual([])
  }
  expect(states).toBeGreaterThan(10 * WORLDS)
}, 600_000)

test('the changes of an organization that fit into one section take effect together', () => {
  for (let seed = FIRST; seed < FIRST + WORLDS / 3; seed++) {
    const story = storyOf(seed)
    const { before, world, checks } = story
    const codes = checks.map(({ check, nowMs }) => [before, world].map((one) => naiveDecide(one, check, nowMs).code))
    const isNew = new Set<string>()
    const found: unknown[] = []
    const via = WAYS[seed % 2]!
    // The organization of a machine that a reload does not contain is unknown, so all of a reload is one section here.
    const way = { rows: via === 'reload' ? 10_000 : 1, atomicRows: 10_000, via }
    play(story, way, (reader) => {
      for (const [i, { check, nowMs }] of checks.entries()) {
        const organization = hex(check.organizationId)
        const { code } = decideNow(reader, check, nowMs)
        const [old, fresh] = codes[i]!
        const isOld = code === old && (old === fresh || !isNew.has(organization))
        if (!isOld && code !== fresh) found.push({ check, code, old, fresh })
        if (old !== fresh && code === fresh) isNew.add(organization)
      }
    })
    expect(found, `seed ${seed}`).toEqual([])
  }
}, 600_000)

test('the index equals the new world after a batch, a reload or a change in pages', () => {
  for (let seed = FIRST; seed < FIRST + WORLDS; seed++) {
    const story = storyOf(seed)
    let last: IndexReader | null = null
    const way = { rows: 1 + (seed % 5), atomicRows: seed % 7, via: WAYS[seed % 3]! }
    const end = play(story, way, (reader) => (last = reader))
    expect(end.rejected, `seed ${seed}`).toEqual([])
    expect(end.rows, `seed ${seed}`).toEqual(end.expectedRows)
    expect(last === null ? [] : differences(last, story.world, 20), `seed ${seed}`).toEqual([])
  }
}, 600_000)
