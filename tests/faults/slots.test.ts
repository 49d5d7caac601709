import { setTimeout as sleep } from 'node:timers/promises'

import { insertApiKey, insertLicense, insertOrganization, onServer, random } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { Haproxy, hasHaproxy } from './support/balancer.ts'
import { endChildren, freePort, isReady, type Service, startValidator, until, untilReady } from './support/children.ts'
import { check, type Reply } from './support/client.ts'
import { byLength, figure, seedOr } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let organizationId: string
let secret: string

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  organizationId = await insertOrganization(pool)
  secret = (await insertApiKey(pool, { organizationId })).secret
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

test("a locked license row fails only checks of that license's new machines", async () => {
  const held = await insertLicense(pool, { organizationId, maxMachines: 50 })
  const free = await insertLicense(pool, { organizationId, maxMachines: 50 })
  const validator = await startValidator(postgres.validatorUrl)
  await untilReady(validator)
  const ask = (license: string, fingerprint: string): Promise<Reply> =>
    check(validator.port, secret, { license, fingerprint })
  expect((await ask(held.key, 'known')).code).toBe('VALID')
  for (const table of ['license_slots', 'licenses'] as const)
    await onServer(postgres.url, async (administrator) => {
      await administrator.query('begin')
      const column = table === 'licenses' ? 'id' : 'license_id'
      await administrator.query(`select from ${table} where ${column} = $1 for update`, [held.id])
      for (let i = 0; i < 5; i++) {
        const [stuck, known, other] = await Promise.all([
          ask(held.key, `new ${table} ${i}`),
          ask(held.key, 'known'),
          ask(free.key, `new ${table} ${i}`),
        ])
        // Claims lock only the license's row in `license_slots`, so a lock of its row in `licenses` does not block claims.
        const unavailable = [503, 'UNAVAILABLE', '1']
        const expected = table === 'licenses' ? [200, 'VALID', undefined] : unavailable
        expect([stuck.status, stuck.code, stuck.headers['retry-after']]).toEqual(expected)
        expect([known.code, other.code]).toEqual(['VALID', 'VALID'])
      }
      await administrator.query('rollback')
    })
  await until(async () => (await ask(held.key, 'new license_slots 0')).code === 'VALID')
  await validator.stop()
})

test.skipIf(!hasHaproxy)(
  'repeated kills of validators behind a balancer cause no wrong verdict and no slot over a limit (needs haproxy)',
  async () => {
    const limits = [1, 3, 10, 40]
    const licenses = await Promise.all(
      limits.map(async (max) =>
        Object.assign(await insertLicense(pool, { organizationId, maxMachines: max }), { max }),
      ),
    )
    const revoked = Object.assign(await insertLicense(pool, { organizationId, status: 'revoked' }), { max: 0 })
    const start = async (port: number, adminPort: number): Promise<Service> =>
      startValidator(postgres.validatorUrl, { VALIDATOR_PORT: String(port), VALIDATOR_ADMIN_PORT: String(adminPort) })
    const pair = [await start(await freePort(), await freePort()), await start(await freePort(), await freePort())]
    await untilReady(...pair)
    const balancer = new Haproxy()
    await balancer.start(pair)
    const from = random(seedOr(8_400))
    const seen = { answers: 0, away: 0, wrong: [] as string[], valid: new Map<string, Set<string>>() }
    const state = { isOver: false }
    const clients = Array.from({ length: 8 }, async () => {
      while (!state.isOver) {
        const license = from.chance(0.2) ? revoked : from.pick(licenses)
        const fingerprint = `m${from.int(license.max * 3 + 2)}`
        const { status, code } = await check(balancer.port, secret, { license: license.key, fingerprint })
        const allowed = license.max === 0 ? ['REVOKED'] : ['VALID', 'TOO_MANY_MACHINES']
        if (status === 0 || status >= 502) seen.away++
        else if (allowed.includes(code)) seen.answers++
        else seen.wrong.push(`${status} ${code} for limit ${license.max}`)
        if (code === 'VALID') seen.valid.set(license.id, (seen.valid.get(license.id) ?? new Set()).add(fingerprint))
        await sleep(2)
      }
    })
    const rounds = byLength(4, 30)
    for (let round = 0; round < rounds; round++) {
      const victim = pair[round % 2]
      if (!victim) continue
      victim.signal('SIGKILL')
      await victim.exit
      const next = await start(victim.port, victim.adminPort)
      pair[round % 2] = next
      await until(() => isReady(next))
      await sleep(byLength(700, 2_000))
    }
    state.isOver = true
    await Promise.all(clients)
    await balancer.stop()
    for (const { id, max } of licenses) {
      const { rows } = await pool.query<{ machine: string }>(
        `select convert_from(machine_id, 'UTF8') as machine from machines where license_id = $1`,
        [id],
      )
      expect(rows.length).toBe(max)
      expect([...(seen.valid.get(id) ?? [])].toSorted()).toEqual(rows.map(({ machine }) => machine).toSorted())
    }
    expect(seen.wrong).toEqual([])
    expect(seen.answers).toBeGreaterThan(rounds * 50)
    figure('Validators killed behind a balancer of two', {
      kills: rounds,
      answers: seen.answers,
      'without a response': seen.away,
    })
    await Promise.all(pair.map((one) => one.stop()))
  },
)
