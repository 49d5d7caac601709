import {
  type ActivityRow,
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertMachine,
  insertOrganization,
  insertRule,
  random,
  type TestDatabase,
  toActivityColumns,
  toActivityRows,
} from '@keyward/testkit'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import {
  BATCH_ROWS,
  countRows,
  loadFeed,
  readFeed,
  type RecordBatch,
  splitBatch,
  uuidToBytes,
  uuidv7,
  writeBehind,
} from '../../src/index.ts'
import { createDatabase, recordActivity } from '../../src/kysely.ts'
import { persist } from './persist.ts'

const NO_LISTS = { rules: [], checks: [], overuse: [], keyUses: [], hostnames: [] }
const EMPTY: RecordBatch = { ...NO_LISTS, activity: toActivityColumns([]) }
/** Noon tomorrow (UTC): later than every stored time, but near enough to be accepted. */
const NOON = new Date().setUTCHours(36, 0, 0, 0)

let database: TestDatabase
let validator: pg.Pool
let organizationId: string
let license: { id: string; productId: string }
let ruleId: string
let me: string
let number: number

beforeAll(async () => {
  database = await createTestDatabase()
  validator = new pg.Pool({ connectionString: database.validatorUrl })
})

afterAll(async () => {
  await validator.end()
  await database.drop()
})

beforeEach(async () => {
  organizationId = await insertOrganization(database.pool)
  license = await insertLicense(database.pool, { organizationId })
  ruleId = await insertRule(database.pool, { organizationId, value: '1.2.3.4' })
  me = uuidv7()
  number = 0
})

const bytes = uuidToBytes
const write = (batch: Partial<RecordBatch>) => writeBehind(validator, me, ++number, { ...EMPTY, ...batch })

async function rows<T extends pg.QueryResultRow>(text: string, values: unknown[] = []): Promise<T[]> {
  return (await database.pool.query<T>(text, values)).rows
}

const checks = (code: string, count: number, hourMs = NOON) => ({
  checks: [{ hourMs, organizationId: bytes(organizationId), productId: bytes(license.productId), code, count }],
})

const activityRow = (code: string, count: number, machine: string | null = null, atMs = NOON): ActivityRow => ({
  minuteMs: atMs,
  licenseId: bytes(license.id),
  code,
  machineId: machine === null ? null : Buffer.from(machine),
  count,
  firstAtMs: atMs + 1,
  lastAtMs: atMs + count,
})
const activity = (...entries: ActivityRow[]) => ({ activity: toActivityColumns(entries) })

const overuse = (count: number, licenseId = bytes(license.id)) => ({
  overuse: [{ licenseId, count, firstAtMs: NOON + 1, lastAtMs: NOON + count }],
})
const hostname = (machine: string, name: string) => ({
  licenseId: bytes(license.id),
  machineId: Buffer.from(machine),
  hostname: name,
})

const countsOf = () =>
  rows<{ code: string; count: number }>(
    'select code, sum(count)::integer as count from check_counts where organization_id = $1 group by code order by code',
    [organizationId],
  )

describe('writeBehind', () => {
  test('adds the matches of a folded rule to the matches of the kept rule', async () => {
    const gone = uuidv7()
    await database.pool.query('insert into folded_rules (gone, kept) values ($1, $2)', [gone, ruleId])
    const match = (id: string, count: number) => ({ id: bytes(id), count, lastAtMs: NOON + count })
    await write({ rules: [match(gone, 5), match(ruleId, 2)] })
    await write({ rules: [match(gone, 1)] })
    expect(
      await rows(
        `select match_count::integer as n, last_matched_at as at from access_rule_counters where rule_id = $1`,
        [ruleId],
      ),
    ).toEqual([{ n: 8, at: new Date(NOON + 5) }])
    await database.pool.query('delete from access_rules where id = $1', [ruleId])
    expect(await rows('select from folded_rules')).toEqual([])
    await write({ rules: [match(gone, 1)] })
  })

  test('counts the matches of monitored rules by hour', async () => {
    const [monitored, enforced] = [uuidv7(), uuidv7()]
    for (const [id, mode] of [
      [monitored, 'MONITOR'],
      [enforced, 'ENFORCE'],
    ])
      await database.pool.query(
        `insert into access_rules (id, organization_id, kind, mode, type, value, scope, created_by)
         values ($1, $2, 'BLACKLIST', $3, 'HWID', uuid_send($1), 'ORGANIZATION', '{"type":"SYSTEM"}')`,
        [id, organizationId, mode],
      )
    const match = (id: string, count: number, lastAtMs: number) => ({ id: bytes(id), count, lastAtMs })
    await write({ rules: [match(monitored, 3, NOON + 5), match(enforced, 4, NOON)] })
    await write({ rules: [match(monitored, 2, NOON + 3_599_999)] })
    await write({ rules: [match(monitored, 1, NOON + 3_600_000)] })
    expect(await rows('select rule_id as id, hour, count::integer from monitored_matches order by hour')).toEqual([
      { id: monitored, hour: new Date(NOON), count: 5 },
      { id: monitored, hour: new Date(NOON + 3_600_000), count: 1 },
    ])
  })

  test('replaces the time of a match that is centuries in the future', async () => {
    const before = Date.now() - 60_000
    await write({ rules: [{ id: bytes(ruleId), count: 1, lastAtMs: Date.UTC(2525, 1, 1) }] })
    const later = await rows<{ at: Date }>(
      'select last_matched_at as at from access_rule_counters where rule_id = $1',
      [ruleId],
    )
    expect(later[0]?.at.getTime()).toBeGreaterThan(before)
    expect(later[0]?.at.getTime()).toBeLessThan(Date.UTC(2525, 1, 1))
  })

  test('adds up several batches', async () => {
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'm' })
    const rule = (count: number, lastAtMs: number) => ({ rules: [{ id: bytes(ruleId), count, lastAtMs }] })
    await write({ ...rule(3, NOON + 5), ...checks('VALID', 4), ...activity(activityRow('VALID', 5, 'm')) })
    await write({ ...rule(2, NOON + 3), ...checks('VALID', 1), ...activity(activityRow('VALID', 7, 'm')) })
    await write({ ...checks('EXPIRED', 2), ...activity(activityRow('VALID', 1), activityRow('EXPIRED', 2, 'm')) })
    expect(
      await rows(
        `select match_count::integer as n, last_matched_at as at from access_rule_counters where rule_id = $1`,
        [ruleId],
      ),
    ).toEqual([{ n: 5, at: new Date(NOON + 5) }])
    expect(await countsOf()).toEqual([
      { code: 'EXPIRED', count: 2 },
      { code: 'VALID', count: 5 },
    ])
    expect(
      await rows(
        `select code, encode(machine_id, 'escape') as machine, count::integer, first_at as first, last_at as last
         from activity where license_id = $1 and type = 'CHECK' order by count`,
        [license.id],
      ),
    ).toEqual([
      { code: 'VALID', machine: null, count: 1, first: new Date(NOON + 1), last: new Date(NOON + 1) },
      { code: 'EXPIRED', machine: 'm', count: 2, first: new Date(NOON + 1), last: new Date(NOON + 2) },
      { code: 'VALID', machine: 'm', count: 12, first: new Date(NOON + 1), last: new Date(NOON + 7) },
    ])
  })

  test('never moves the last-seen time backwards', async () => {
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'm' })
    const later = Date.now() + 60_000
    const seen = (atMs: number) => activity({ ...activityRow('VALID', 1, 'm', atMs - 1), seen: true })
    await write(seen(later))
    await write(seen(later - 30_000))
    await write(activity({ ...activityRow('VALID', 1, 'm', later + 30_000), seen: false }))
    const last = await rows('select last_seen_at as at from machines where license_id = $1', [license.id])
    expect(last).toEqual([{ at: new Date(later) }])
  })

  test('keeps one open alert per license and opens another after an acknowledgement', async () => {
    const alerts = () =>
      rows('select count::integer, last_at as last from alerts where license_id = $1 order by id', [license.id])
    await write(overuse(2))
    await write(overuse(3))
    expect(await alerts()).toEqual([{ count: 5, last: new Date(NOON + 3) }])
    await database.pool.query('update alerts set acknowledged_at = now()')
    await write(overuse(1))
    expect(await alerts()).toHaveLength(2)
    // Only overuse counts in an alert. Activity with the same code does not.
    await write(activity(activityRow('TOO_MANY_MACHINES', 7, 'm')))
    expect(await alerts()).toMatchObject([{ count: 5 }, { count: 1 }])
  })

  test('never moves the last use of API keys backwards or into the future', async () => {
    const { id } = await insertApiKey(database.pool, { organizationId })
    const use = (atMs: number) =>
      write({
        keyUses: [
          { id: bytes(id), atMs },
          { id: bytes(uuidv7()), atMs },
        ],
      })
    const last = async () =>
      (await rows<{ at: Date }>('select last_used_at as at from credential_uses where credential_id = $1', [id]))[0]?.at
    const now = Date.now() - 1_000
    await use(now)
    await use(now - 60_000)
    expect(await last()).toEqual(new Date(now))
    await use(now + 86_400_000)
    expect((await last())?.getTime()).toBeLessThan(Date.now() + 1_000)
  })

  test('stores the hostname of a machine that has none', async () => {
    for (const machineId of ['a', 'b']) await insertMachine(database.pool, { licenseId: license.id, machineId })
    const names = () => rows('select hostname from machines where license_id = $1 order by machine_id', [license.id])
    await write({ hostnames: [hostname('a', 'build\0-7'), hostname('unknown', 'x')] })
    await write({ hostnames: [hostname('a', 'renamed')] })
    expect(await names()).toEqual([{ hostname: 'build-7' }, { hostname: null }])
  })

  test('skips rows of deleted licenses, rules and organizations', async () => {
    const gone = bytes(uuidv7())
    const [counted] = checks('VALID', 1).checks
    if (counted === undefined) throw new Error('no row')
    expect(
      await write({
        rules: [{ id: gone, count: 1, lastAtMs: NOON }],
        checks: [{ ...counted, organizationId: gone }, counted],
        ...overuse(1, gone),
        keyUses: [{ id: gone, atMs: NOON }],
        hostnames: [{ ...hostname('m', 'name'), licenseId: gone }],
        ...activity(
          { ...activityRow('VALID', 1, 'm'), licenseId: gone, seen: true },
          { ...activityRow('TOO_MANY_MACHINES', 1, 'm'), licenseId: gone },
          activityRow('VALID', 1),
        ),
      }),
    ).toBe('applied')
    expect(await countsOf()).toEqual([{ code: 'VALID', count: 1 }])
  })

  test('sends no notification and adds nothing to the change log', async () => {
    await insertMachine(database.pool, { licenseId: license.id, machineId: 'm' })
    const { snapshot } = await loadFeed(database.validatorUrl, { onBatch: () => undefined })
    const listener = await database.pool.connect()
    let woken = 0
    listener.on('notification', () => void woken++)
    await listener.query('listen keyward_changes')
    await write({
      rules: [{ id: bytes(ruleId), count: 1, lastAtMs: NOON }],
      ...checks('VALID', 1),
      ...overuse(1),
      hostnames: [hostname('m', 'name')],
      ...activity({ ...activityRow('VALID', 1, 'm'), seen: true }, activityRow('TOO_MANY_MACHINES', 1, 'm')),
    })
    expect((await readFeed(listener, snapshot)).changes).toEqual([])
    await listener.query('unlisten *')
    listener.release()
    expect(woken).toBe(0)
  })

  test('applies every batch exactly once when several validators repeat batches', async () => {
    const validators = Array.from({ length: 4 }, () => uuidv7())
    const sent = Array.from({ length: 25 }, (_, i) => i + 1)
    await Promise.all(
      validators.map(async (id, v) => {
        const { int } = random(v)
        for (const flush of sent) {
          const batch = {
            ...EMPTY,
            ...checks('VALID', flush),
            ...activity(activityRow('VALID', flush, `m${flush % 3}`)),
          }
          const repeats = 1 + int(3)
          const answers = await Promise.all(
            Array.from({ length: repeats }, () => persist(() => writeBehind(validator, id, flush, batch))),
          )
          if (answers.filter((answer) => answer === 'applied').length !== 1)
            throw new Error('the batch was not applied exactly once')
        }
      }),
    )
    const total = 4 * sent.reduce((sum, flush) => sum + flush, 0)
    expect(await countsOf()).toEqual([{ code: 'VALID', count: total }])
    const [summed] = await rows<{ sum: number }>(
      'select sum(count)::integer as sum from activity where license_id = $1',
      [license.id],
    )
    expect(summed?.sum).toBe(total)
  })

  test('does not deadlock when several validators write the same rows in different orders', async () => {
    const dice = random(99)
    const rules = await Promise.all(
      Array.from({ length: 60 }, (_, i) => insertRule(database.pool, { organizationId, value: `10.0.0.${i}` })),
    )
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        const id = uuidv7()
        for (let flush = 1; flush <= 10; flush++) {
          const shuffled = dice.shuffle(rules)
          const counted = shuffled.map((rule) => ({ id: bytes(rule), count: 1, lastAtMs: NOON }))
          await writeBehind(validator, id, flush, { ...EMPTY, rules: counted })
        }
      }),
    )
    const counts = await rows<{ n: number }>(
      'select distinct match_count::integer as n from access_rule_counters where rule_id = any ($1)',
      [rules],
    )
    expect(counts).toEqual([{ n: 80 }])
  })
})

test('splits usage into batches without losing a row', () => {
  const { int } = random(7)
  const entries = Array.from({ length: 1_200 }, (_, i) => ({
    ...activityRow(int(3) === 0 ? 'TOO_MANY_MACHINES' : 'VALID', i, int(4) === 0 ? null : 'm'.repeat(1 + int(40))),
    seen: int(3) === 0,
  }))
  const gathered: RecordBatch = {
    rules: Array.from({ length: 1_500 }, (_, i) => ({ id: new Uint8Array(16), count: i, lastAtMs: 0 })),
    checks: Array.from({ length: 700 }, (_, i) => ({ ...checks('VALID', i).checks[0]! })),
    overuse: Array.from({ length: 300 }, (_, i) => ({ ...overuse(i).overuse[0]! })),
    keyUses: Array.from({ length: 20 }, (_, i) => ({ id: new Uint8Array(16), atMs: i })),
    hostnames: Array.from({ length: 1_001 }, (_, i) => ({ ...hostname('m', `host ${i}`) })),
    ...activity(...entries),
  }
  const batches = splitBatch(gathered)
  expect(Math.max(...batches.map(countRows))).toBe(BATCH_ROWS)
  expect(batches.map(countRows).reduce((sum, one) => sum + one)).toBe(countRows(gathered))
  expect(batches.flatMap((batch) => batch.rules)).toEqual(gathered.rules)
  expect(batches.flatMap((batch) => batch.checks)).toEqual(gathered.checks)
  expect(batches.flatMap((batch) => batch.overuse)).toEqual(gathered.overuse)
  expect(batches.flatMap((batch) => batch.keyUses)).toEqual(gathered.keyUses)
  expect(batches.flatMap((batch) => batch.hostnames)).toEqual(gathered.hostnames)
  expect(batches.flatMap((batch) => toActivityRows(batch.activity))).toEqual(toActivityRows(gathered.activity))
  expect(splitBatch(EMPTY)).toEqual([])
})

test('recordActivity adds an entry for each license of the organization, and none for other licenses', async () => {
  const db = createDatabase(database.pool)
  const actor = { type: 'member', id: 'x' }
  const entry = { organizationId, licenseIds: [license.id, uuidv7()], type: 'LICENSE_SUSPENDED', actor } as const
  await db.transaction().execute((transaction) => recordActivity(transaction, entry))
  // A license of another organization gets no entry.
  await recordActivity(db, { ...entry, organizationId: uuidv7() })
  const noted = await db.selectFrom('activity').selectAll().where('organizationId', '=', organizationId).execute()
  expect(noted).toHaveLength(1)
  expect(noted[0]).toMatchObject({ licenseId: license.id, type: 'LICENSE_SUSPENDED', actor, count: '1', code: null })
  expect(noted[0]?.id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab]/)
})
