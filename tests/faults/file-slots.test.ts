/**
 * Tests that the slot of a machine with a license file returns when the file ends, although the clocks of all services are wrong and the
 * validators restart from their index files (docs/api.md#f2, docs/api.md#f8). The clock of Postgres decides.
 */

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { insertLicense, type LicenseToInsert } from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  MASTER_KEY,
  OPERATOR_TOKEN,
  type Service,
  startService,
  startValidator,
  until,
  untilReady,
} from './support/children.ts'
import { check, send } from './support/client.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

const SABOTAGE = [`--import=${new URL('support/sabotage.ts', import.meta.url).href}`]
const HOUR_MS = 3_600_000
/** A skew that is longer than the lifetime of every file. */
const MANY_DAYS_MS = 40 * 24 * HOUR_MS

const organizationSchema = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const payloadSchema = z.object({ refreshAfter: z.iso.datetime() })

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let folder: string
let management: Service
let vendor: z.infer<typeof organizationSchema>
/** Validators whose clocks are behind and ahead. */
const validators: { behind?: Service; ahead?: Service } = {}
type Name = keyof typeof validators

/** Returns the settings of a service whose clock has an offset. */
async function skewed(name: string, offsetMs: number): Promise<{ KEYWARD_SABOTAGE: string }> {
  const path = join(folder, `${name}.clock`)
  await writeFile(path, `clock ${offsetMs}`)
  return { KEYWARD_SABOTAGE: path }
}

async function start(name: Name): Promise<void> {
  const clock = await skewed(name, name === 'ahead' ? MANY_DAYS_MS : -MANY_DAYS_MS)
  const index = { INDEX_FILE: join(folder, name), INDEX_FILE_INTERVAL: '1h' }
  const validator = await startValidator(postgres.validatorUrl, { ...index, ...clock }, SABOTAGE)
  validators[name] = validator
  await untilReady(validator)
}

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  folder = await mkdtemp(join(tmpdir(), 'keyward-file-slots-'))
  const clock = await skewed('management', -HOUR_MS)
  const ports = { MANAGEMENT_PORT: '0', MANAGEMENT_ADMIN_PORT: '0' }
  const env = { ...ports, ...clock, OPERATOR_TOKEN, MASTER_KEY, DATABASE_URL: postgres.url }
  management = await startService('management', env, SABOTAGE)
  await Promise.all([start('behind'), start('ahead'), untilReady(management)])
  const created = await send(management.port, '/api/v1/organizations', {
    secret: OPERATOR_TOKEN,
    body: { name: 'Acme' },
  })
  vendor = organizationSchema.parse(JSON.parse(created.text))
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
  await rm(folder, { recursive: true, force: true })
})

const codeOf = async (name: Name, license: string, fingerprint: string): Promise<string> =>
  (await check(validators[name]?.port ?? 0, vendor.apiKey, { license, fingerprint })).code

interface Kind {
  name: string
  license: Partial<LicenseToInsert>
  /** Requests the file of the machine `plant`, which takes a slot if it holds none. Returns the text of the file, or of the error. */
  request: (license: { id: string; key: string }) => Promise<string>
}

const KINDS: readonly Kind[] = [
  {
    name: 'a file for one machine',
    license: {},
    async request({ id }) {
      const body = { machineId: 'plant' }
      return (await send(management.port, `/api/v1/licenses/${id}/file`, { secret: vendor.managementToken, body })).text
    },
  },
  {
    name: 'a file that ends with the lease of its machine',
    license: { leaseSeconds: 600 },
    async request({ key }) {
      await until(async () => (await codeOf('ahead', key, 'plant')) === 'VALID')
      const body = { licenseKey: key, fingerprint: 'plant' }
      return (await send(management.port, '/api/v1/licenses/file', { secret: vendor.apiKey, body })).text
    },
  },
]

/** Returns the payload of a file, or null for the text of an error. */
function payloadOf(text: string): z.infer<typeof payloadSchema> | null {
  const [payload = '', signature] = text.split('.')
  return signature === undefined || text.startsWith('{')
    ? null
    : payloadSchema.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
}

async function machinesOf(licenseId: string) {
  const { rows } = await pool.query<{ machine: string; ends: Date | null; since: Date }>(
    `select convert_from(machine_id, 'UTF8') as machine, lease_ends_at as ends, first_seen_at as since from machines where license_id = $1`,
    [licenseId],
  )
  return rows
}

test.each(KINDS)('the slot returns at the end of $name', async ({ license: given, request }) => {
  const license = await insertLicense(pool, { organizationId: vendor.id, maxMachines: 1, ...given })
  let payload: ReturnType<typeof payloadOf> = null
  await until(async () => (payload = payloadOf(await request(license))) !== null)
  const [held] = await machinesOf(license.id)
  expect(payload).toEqual({ refreshAfter: held?.ends?.toISOString() })
  const isFull = async (name: Name): Promise<boolean> =>
    (await codeOf(name, license.key, 'other')) === 'TOO_MANY_MACHINES'
  const both = ['behind', 'ahead'] as const
  for (const name of both) await until(() => isFull(name))

  // One validator writes its index file as it stops, the other is killed and reads its journal.
  await validators.behind?.stop()
  validators.ahead?.signal('SIGKILL')
  await validators.ahead?.exit
  for (const name of both) {
    await start(name)
    for (let i = 0; i < 5; i++) expect(await isFull(name)).toBe(true)
  }

  await validators.behind?.stop()
  const { rows } = await pool.query<{ ends: Date }>(
    `update machines set lease_ends_at = now() + interval '2 s', file_ends_at = case when file_ends_at is not null then now() + interval '2 s' end
     where license_id = $1 returning lease_ends_at as ends`,
    [license.id],
  )
  const ends = rows[0]?.ends ?? new Date(Number.NaN)
  await until(async () => {
    const code = await codeOf('ahead', license.key, 'other')
    expect(['TOO_MANY_MACHINES', 'VALID']).toContain(code)
    return code === 'VALID'
  })
  const [taken] = await machinesOf(license.id)
  expect(taken?.machine).toBe('other')
  expect(taken?.since.getTime()).toBeGreaterThanOrEqual(ends.getTime())
  // The index file of this validator still contains the slot of the first machine.
  await start('behind')
  for (const name of both) await until(async () => (await codeOf(name, license.key, 'plant')) === 'TOO_MANY_MACHINES')
  await until(async () => (await codeOf('behind', license.key, 'other')) === 'VALID')
  expect((await machinesOf(license.id)).map(({ machine }) => machine)).toEqual(['other'])
})
