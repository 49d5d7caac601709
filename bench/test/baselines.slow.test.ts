/** Compares the verdicts of the baselines with the naive model of the engine, over generated licenses, rules and checks. */

import { fileURLToPath } from 'node:url'

import { parseNetwork } from '@keyward/address'
import { type NaiveCheck, naiveDecide, type World } from '@keyward/engine/naive'
import { createTestDatabase, random, type Random, type TestDatabase } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type BaselineName, missingPackages } from '../src/baselines/companion.ts'
import { apiKey, BLACKLISTED_MACHINE, EXCLUDED_MACHINE, machineId, type Shape } from '../src/data/population.ts'
import { clientAddress, ruleRow } from '../src/data/rules.ts'
import { type Child, startChild } from '../src/harness/children.ts'
import { ADDRESSES, fillWorld, MACHINE, readWorld } from './support/world.ts'

const shape: Shape = { seed: 11, licenses: 200, rules: 400, organizations: 4, machinesPerLicense: 3, maxMachines: 5 }
const SEED = 20
const CHECKS = 300
const NAMES = ['nginx-lua', 'fastify-redis', 'express-postgres'] as const satisfies BaselineName[]
const runnable = NAMES.filter((name) => missingPackages(name) === null)

let database: TestDatabase
let world: World
const servers = new Map<BaselineName, Child>()
beforeAll(async () => {
  database = await createTestDatabase()
  await fillWorld(database, shape)
  world = await readWorld(database)
  const started = runnable.map(async (name) => {
    const file = fileURLToPath(new URL(`../src/baselines/${name}.ts`, import.meta.url))
    servers.set(name, await startChild({ file, env: { DATABASE_URL: database.url } }))
  })
  await Promise.all(started)
})
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.stop()))
  await database.drop()
})

interface Check {
  organization: number
  licenseKey: string
  machine: string
  address: string
  country: string | null
}

/** Returns a random check. Many calls return checks with every kind of license, machine, address and country, and with unknown keys. */
function generate({ pick, int, chance }: Random): Check {
  const license = int(shape.licenses)
  const { organization, value, type } = ruleRow(shape, int(shape.rules))
  const own = chance(0.5) ? license % shape.organizations : organization
  const key = Buffer.from(world.licenses[license]!.key).toString()
  const known = machineId(shape, license, int(shape.machinesPerLicense))
  const ruled = type === 'HWID' ? value : MACHINE
  return {
    organization: chance(0.9) ? license % shape.organizations : own,
    licenseKey: chance(0.95) ? key : `${key}X`,
    machine: pick([known, known, known, `new-${int(40)}`, ruled, BLACKLISTED_MACHINE, EXCLUDED_MACHINE, MACHINE, '']),
    address: pick([
      ...ADDRESSES,
      clientAddress(shape.seed, int(1000)),
      type === 'IP' ? value.split('/')[0]! : '64.0.0.1',
    ]),
    country: pick([null, null, type === 'COUNTRY' ? value : 'AD', 'ZW']),
  }
}

const response = z.object({ code: z.string(), status: z.number(), expiresAt: z.string().nullable().optional() })

async function send(server: Child, check: Check): Promise<z.infer<typeof response> & { http: number }> {
  const sent = await fetch(`http://127.0.0.1:${server.port}/api/v2/license/validate`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey(shape, check.organization)}`,
      'content-type': 'application/json',
      'x-forwarded-for': `203.0.113.7, ${check.address}`,
      ...(check.country === null ? {} : { 'x-country': check.country }),
    },
    body: JSON.stringify({
      license: check.licenseKey,
      ...(check.machine === '' ? {} : { fingerprint: check.machine }),
    }),
  })
  return { http: sent.status, ...response.parse(await sent.json()) }
}

/** Returns the code and the expiry of the naive model. Adds the machine that the check claims or records to `copy`. */
function decide(copy: World, check: Check): { code: string; expiresAt?: string | null } {
  const organizationId = copy.licenses[check.organization]!.organizationId
  const given: NaiveCheck = {
    organizationId,
    productId: null,
    licenseKey: Buffer.from(check.licenseKey),
    machineId: check.machine === '' ? null : Buffer.from(check.machine),
    address: parseNetwork(check.address),
    country: check.country,
  }
  const { code, license, slot } = naiveDecide(copy, given, Date.now())
  if (code !== 'VALID' || license === null) return { code }
  if (slot !== 'none' && given.machineId !== null) {
    copy.machines.push({ licenseId: license.id, machineId: given.machineId })
    license.used += 1
  }
  return { code, expiresAt: license.expiresAtMs === Infinity ? null : new Date(license.expiresAtMs).toISOString() }
}

describe.each(NAMES)('%s', (name) => {
  test.skipIf(missingPackages(name) !== null)('returns the verdicts of the naive model', async () => {
    expect(await compare(servers.get(name)!)).toEqual([
      'BLACKLISTED',
      'EXPIRED',
      'FINGERPRINT_REQUIRED',
      'NOT_FOUND',
      'REVOKED',
      'SUSPENDED',
      'TOO_MANY_MACHINES',
      'VALID',
    ])
  })
})

/** Returns the codes that occurred. Throws at the first difference between the baseline and the model. */
async function compare(server: Child): Promise<string[]> {
  const copy: World = { ...world, licenses: world.licenses.map((one) => ({ ...one })), machines: [...world.machines] }
  const generator = random(SEED)
  const codes = new Set<string>()
  for (let n = 0; n < CHECKS; n += 1) {
    const check = generate(generator)
    const expected = decide(copy, check)
    const status = expected.code === 'VALID' ? 200 : 400
    expect(await send(server, check), `check ${n}: ${JSON.stringify(check)}`).toMatchObject({
      ...expected,
      status,
      http: status,
    })
    codes.add(expected.code)
  }
  return [...codes].toSorted()
}
