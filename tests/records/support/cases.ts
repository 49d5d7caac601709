/** Creates the requests of a caller: checks with every outcome, and malformed requests. */

import { insertCustomer, insertLicense, insertMachine, insertProduct, insertRule } from '@keyward/testkit'

import type { openPool } from '../../faults/support/postgres.ts'
import type { Request } from './callers.ts'

const V2 = '/api/v2/license/validate'

type License = Awaited<ReturnType<typeof insertLicense>>

export type Licenses = {
  readonly limited: License
  readonly unlimited: License
  readonly full: License
  readonly suspended: License
  readonly revoked: License
  readonly expired: License
  /** The license of a blacklisted customer. */
  readonly blacklisted: License
  /** A license whose product has blacklists and exclusions for countries, machines and addresses. */
  readonly ruled: License
}

/** The rules of the product of the license `ruled`. Their values are ranges, so that the value of no rule equals the address of a check. */
const RULES = [
  { kind: 'BLACKLIST', type: 'IP', value: '198.51.100.0/24' },
  { kind: 'BLACKLIST', type: 'IP', value: '2001:db8:ab00::/40' },
  { kind: 'EXCLUSION', type: 'IP', value: '192.0.2.0/24' },
  { kind: 'EXCLUSION', type: 'IP', value: '2001:db8:cd00::/40' },
  { kind: 'BLACKLIST', type: 'IP', value: '127.94.0.0/16' },
  { kind: 'BLACKLIST', type: 'COUNTRY', value: 'NR' },
  { kind: 'BLACKLIST', type: 'HWID', value: 'machine-refused' },
] as const

export async function createLicenses(pool: ReturnType<typeof openPool>, organizationId: string): Promise<Licenses> {
  const productId = await insertProduct(pool, { organizationId })
  const customerId = await insertCustomer(pool, { organizationId, email: 'refused@example.com' })
  const license = (given: Partial<Parameters<typeof insertLicense>[1]>): Promise<License> =>
    insertLicense(pool, { organizationId, ...given })
  for (const rule of RULES) await insertRule(pool, { organizationId, productId, ...rule })
  await insertRule(pool, { organizationId, type: 'CUSTOMER', value: customerId })
  const full = await license({ maxMachines: 1 })
  await insertMachine(pool, { licenseId: full.id, machineId: 'machine-inside' })
  return {
    limited: await license({ maxMachines: 1_000 }),
    unlimited: await license({ maxMachines: null }),
    full,
    suspended: await license({ status: 'suspended' }),
    revoked: await license({ status: 'revoked' }),
    expired: await license({ expiresAt: new Date(Date.now() - 1_000) }),
    blacklisted: await license({ customerId }),
    ruled: await license({ productId, maxMachines: 1_000 }),
  }
}

let machines = 0

/** Returns a machine id that no other check has. As a control, the search must find the machine id. */
export const newMachine = (): string => `machine-sent-${String(++machines).padStart(4, '0')}-by-check`

/** Returns the requests of one caller. `by` contains the fields that all these requests share. */
export function createCases(licenses: Licenses, secret: string, by: Partial<Request>): Request[] {
  const { limited, unlimited, full } = licenses
  const v2 = (license: string, more: object = {}): Request => ({
    ...by,
    path: V2,
    secret,
    body: { license, ...more },
  })
  const v1 = (licenseKey: string, more: object = {}, what = 'validate'): Request => ({
    ...by,
    path: `/api/v1/${what}`,
    secret,
    body: { licenseKey, ...more },
  })
  const activated = newMachine()
  const verdicts = Object.values(licenses).flatMap(({ key }) => [
    v2(key, { fingerprint: 'machine-known' }),
    v1(key, { fingerprint: newMachine(), hostname: 'build-host-7' }),
    v2(key, { hwid: 'machine-refused' }),
    v2(key),
  ])
  return [
    ...verdicts,
    v2('no-such-key', { fingerprint: 'x' }),
    v2('k'.repeat(4_000)),
    v2(full.key, { macAddress: newMachine() }),
    v1(limited.key, { fingerprint: activated }, 'activate'),
    v1(limited.key, { fingerprint: activated }, 'deactivate'),
    v1(limited.key, { fingerprint: activated }, 'deactivate'),
    v1('no-such-key', { fingerprint: activated }, 'deactivate'),
    v1(unlimited.key, { fingerprint: 'm', hostname: 'h\u00e4 "quoted" \\ \u0001' }),
    ...createMalformed(limited.key, secret, by),
  ]
}

const PATHS = [V2, '/api/v1/validate', '/api/v1/activate', '/api/v1/deactivate']
/** The number of calls of `createMalformed`. It shifts the paths, so that callers send the same body to different paths. */
let turn = 0

function createMalformed(key: string, secret: string, by: Partial<Request>): Request[] {
  const bodies = [
    '',
    '{',
    '[]',
    'null',
    '"text"',
    '{"license":7}',
    `{"license":"${key}","fingerprint":{"a":1}}`,
    `{"license":"${key}","fingerprint":"\\ud800"}`,
    `{"license":"${key}","fingerprint":"${'m'.repeat(513)}"}`,
    Buffer.from([0x7b, 0xff, 0xfe, 0x7d]),
  ]
  turn++
  const send = (path: string, body: unknown): Request => ({ ...by, path, secret, body })
  const wrong = bodies.map((body, i) => send(PATHS[(i + turn) % PATHS.length] ?? V2, body))
  const body = { license: key, licenseKey: key, fingerprint: 'm' }
  return [
    ...wrong,
    { ...by, path: V2, secret, body: 'x'.repeat(17_000) },
    { ...by, path: V2, body },
    { ...by, path: V2, body, secret: 'kwk_nonsense' },
    { ...by, path: '/api/v1/validate', body, secret: `${secret.slice(0, -1)}~` },
    { ...by, path: V2, method: 'GET', secret },
    { ...by, path: '/api/v1/deactivate', method: 'DELETE', secret, body },
    { ...by, path: '/api/v1/nothing-here', secret, body },
    { ...by, path: '/', method: 'GET' },
    { ...by, path: '/api/v1/public-key', method: 'GET', secret },
    { ...by, path: '/api/v1/public-keys', method: 'GET', secret },
    { ...by, path: '/api/v1/public-key', method: 'GET' },
  ]
}
