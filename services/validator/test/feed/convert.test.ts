import type { FeedChange, LicenseRow, RuleRow } from '@keyward/database'
import { expect, test } from 'vitest'

import { convertChanges } from '../../src/feed/convert.ts'

const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)
const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const LICENSE: LicenseRow = {
  id: id(1),
  organizationId: id(2),
  productId: id(3),
  customerId: id(4),
  key: bytes('KEY'),
  status: 'active',
  expiresAtMs: Infinity,
  maxMachines: 5,
  leaseSeconds: null,
  graceDays: null,
  used: 0,
  entitlements: null,
}
const RULE: RuleRow = {
  id: id(5),
  organizationId: id(2),
  kind: 'BLACKLIST',
  mode: 'ENFORCE',
  type: 'HWID',
  value: bytes('secret machine'),
  scope: 'LICENSE',
  scopeId: id(1),
  customerId: null,
  expiresAtMs: 17,
  allowSuspendedOrExpired: false,
}
const license = (row: LicenseRow): FeedChange => ({ entity: 'license', id: row.id, row })
const rule = (changed: Partial<RuleRow>): FeedChange => ({ entity: 'rule', id: RULE.id, row: { ...RULE, ...changed } })

test('returns readable changes unchanged and in order', () => {
  const changes: FeedChange[] = [
    { entity: 'organization', id: id(2), row: { id: id(2) } },
    license(LICENSE),
    { entity: 'license', id: id(9), row: null },
    { entity: 'machine', licenseId: id(1), machineId: bytes('m'), held: true, used: 1 },
    { entity: 'rule', id: id(5), row: null },
  ]
  expect(convertChanges(changes)).toEqual({ changes, signingKeys: [], unreadable: [] })
})

test('returns signing keys separately', () => {
  const gone: FeedChange = { entity: 'signingKey', id: id(7), row: null }
  expect(convertChanges([gone])).toEqual({ changes: [], signingKeys: [gone], unreadable: [] })
})

test.each<[string, Partial<RuleRow>, object]>([
  ['a machine id', {}, { type: 'HWID', machineId: RULE.value }],
  [
    'a range',
    { type: 'IP', value: bytes('10.0.0.0/8') },
    { network: { family: 4, words: [167_772_160], prefixLength: 8 } },
  ],
  ['a country', { type: 'COUNTRY', value: bytes('DE') }, { type: 'COUNTRY', country: 'DE' }],
  ['a customer', { type: 'CUSTOMER', value: bytes('x'), customerId: id(4) }, { type: 'CUSTOMER', customerId: id(4) }],
])('converts a rule on %s', (_, changed, match) => {
  const { changes, unreadable } = convertChanges([rule(changed)])
  expect(unreadable).toEqual([])
  expect(changes).toHaveLength(1)
  expect(changes[0]).toMatchObject({
    entity: 'rule',
    id: RULE.id,
    row: { ...match, kind: 'BLACKLIST', scopeId: id(1) },
  })
})

test.each<[string, Partial<RuleRow>]>([
  ['its kind is unknown', { kind: 'GREYLIST' }],
  ['its scope is unknown', { scope: 'TEAM' }],
  ['its type is unknown', { type: 'ASN' }],
  ['its value is not an address or range', { type: 'IP', value: bytes('10.0.0') }],
  ['its value is not an address or range', { type: 'IP', value: Uint8Array.of(0xff, 0xfe) }],
  ['its value is not a country code', { type: 'COUNTRY', value: bytes('XX') }],
  ['its customer is missing', { type: 'CUSTOMER', customerId: null }],
])('removes a rule from the index when %s', (reason, changed) => {
  const { changes, unreadable } = convertChanges([rule(changed), license(LICENSE)])
  expect(unreadable).toEqual([{ entity: 'rule', id: '05'.repeat(16), reason }])
  expect(changes).toEqual([{ entity: 'rule', id: RULE.id, row: null }, license(LICENSE)])
})

test('limits the machines of a license to 100,000', () => {
  const { changes } = convertChanges(
    [100_000, 100_001, null].map((maxMachines) => license({ ...LICENSE, maxMachines })),
  )
  expect(changes).toMatchObject([100_000, 100_000, null].map((maxMachines) => ({ row: { maxMachines } })))
})

test('removes a license from the index when its status is unknown', () => {
  const { changes, unreadable } = convertChanges([license({ ...LICENSE, status: 'frozen' })])
  expect(unreadable).toEqual([{ entity: 'license', id: '01'.repeat(16), reason: 'its status is unknown' }])
  expect(changes).toEqual([{ entity: 'license', id: LICENSE.id, row: null }])
})
