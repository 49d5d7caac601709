/**
 * Tests slots at scale. Machines claim and release slots through three validators that are repeatedly killed and replaced.
 * The last response to each machine must match the table (docs/api.md#s1). The long form sends a million claims.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, insertProduct, random } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { endChildren, type Service, startValidator, untilReady } from '../faults/support/children.ts'
import { byLength, figure, seedOr } from '../faults/support/length.ts'
import { createPostgres, openPool, type TestPostgres } from '../faults/support/postgres.ts'
import { storm } from './support/storm.ts'

const CLAIMS = Number(process.env['KEYWARD_CLAIMS'] ?? byLength(2_000, 1_000_000))
const LICENSES = Math.ceil(CLAIMS / 50)
const AT_ONCE = 64
const KILL_EVERY_MS = byLength(300, 5_000)
const SEED = seedOr(20_261_120)

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let secret: string
let keys: string[]

beforeAll(async () => {
  postgres = await createPostgres({ max_wal_size: '2GB' })
  pool = openPool(postgres.url)
  const organizationId = await insertOrganization(pool)
  const productId = await insertProduct(pool, { organizationId })
  secret = (await insertApiKey(pool, { organizationId })).secret
  const { customerId } = await insertLicense(pool, { organizationId, productId })
  keys = Array.from({ length: LICENSES }, (_, i) => `LICENSE-${i}`)
  await pool.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, key, 'PERPETUAL', 20 + n % 50 from unnest($4::text[]) with ordinality as k (key, n)`,
    [organizationId, productId, customerId, keys],
  )
}, 120_000)
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

/** Returns licenses over their limit or with a wrong count. A single statement reads a consistent snapshot. */
async function contradictions(): Promise<unknown[]> {
  const { rows } = await pool.query<object>(
    `select l.key, s.used, l.max_machines, coalesce(m.machines, 0) as machines
     from licenses l join license_slots s on s.license_id = l.id
     left join (select license_id, count(*)::int as machines from machines group by license_id) m on m.license_id = l.id
     where s.used > l.max_machines or s.used <> coalesce(m.machines, 0)`,
  )
  return rows
}

/**
 * Repeatedly ends a validator, two out of three times by SIGKILL, and starts another one. Returns the number of replacements.
 */
async function replaceAll(validators: Service[], state: { isOver: boolean }): Promise<number> {
  const dice = random(SEED)
  let ended = 0
  for (await sleep(KILL_EVERY_MS); !state.isOver; await sleep(KILL_EVERY_MS)) {
    const i = dice.int(validators.length)
    const victim = validators[i]
    if (victim === undefined) throw new Error('The victim is not in the list of validators')
    victim.signal(dice.chance(2 / 3) ? 'SIGKILL' : 'SIGTERM')
    await victim.exit
    const next = await startValidator(postgres.validatorUrl, { LOG_LEVEL: 'error' })
    await untilReady(next)
    validators[i] = next
    ended++
  }
  return ended
}

async function watchTables(state: { isOver: boolean }): Promise<number> {
  let looks = 0
  for (; !state.isOver; await sleep(byLength(200, 5_000))) {
    expect(await contradictions()).toEqual([])
    looks++
  }
  return looks
}

test(
  `the responses to ${CLAIMS} claims, ${AT_ONCE} at a time, match the table while validators are killed`,
  {
    timeout: byLength(120_000, 3_600_000),
  },
  async () => {
    const validators = await Promise.all(
      Array.from({ length: 3 }, () => startValidator(postgres.validatorUrl, { LOG_LEVEL: 'error' })),
    )
    await untilReady(...validators)
    const state = { isOver: false }
    const [replaced, watched] = [replaceAll(validators, state), watchTables(state)]
    const startedMs = performance.now()
    const told = await storm({
      validators: () => validators,
      secret,
      keys,
      claims: CLAIMS,
      atOnce: AT_ONCE,
      seed: SEED,
    })
    const tookMs = performance.now() - startedMs
    state.isOver = true
    const [ended, looks] = [await replaced, await watched]
    for (const validator of validators) await validator.stop()

    expect(await contradictions()).toEqual([])
    const { rows } = await pool.query<{ machine: string }>(
      `select convert_from(machine_id, 'UTF8') as machine from machines`,
    )
    const held = new Set(rows.map(({ machine }) => machine))
    expect(told.wrong).toEqual([])
    expect([...told.holders].filter((machine) => !held.has(machine))).toEqual([])
    expect([...told.without].filter((machine) => held.has(machine) && !told.unsure.has(machine))).toEqual([])
    expect([...held].filter((machine) => !told.holders.has(machine) && !told.unsure.has(machine))).toEqual([])
    expect(told.granted).toBeGreaterThan(CLAIMS / 4)
    expect(told.refused).toBeGreaterThan(0)
    expect(told.releases).toBeGreaterThan(0)
    expect(ended).toBeGreaterThan(0)
    const { claims, granted, refused, releases, known, unanswered } = told
    const counts = {
      claims,
      granted,
      refused,
      releases,
      known,
      unanswered,
      holders: held.size,
      validatorsEnded: ended,
      looks,
    }
    figure('slots', { ...counts, seconds: Math.round(tookMs / 1_000), seed: SEED })
  },
)
