import { expect, test } from 'vitest'

import { type Change, createIndex, type Network } from '../../src/index.ts'
import { credential, CUSTOMER, idOf, license, machine, ORGANIZATION, PRODUCT, rule, tenant } from '../support/rows.ts'

const other = idOf(1, 2)
const four = (word: number, prefixLength: number): Network => ({ family: 4, words: [word], prefixLength })
const country = (code: string): Change => rule({ type: 'COUNTRY', country: code })
const ip = (network: Network): Change => rule({ type: 'IP', network })
const short = new Uint8Array(15)

const REJECTED: [string, Change, string][] = [
  ['an id of 15 bytes', { entity: 'organization', id: short, row: { id: short } }, 'an id must have 16 bytes'],
  [
    'a product of an unknown organization',
    { entity: 'product', id: idOf(2, 9), row: { id: idOf(2, 9), organizationId: other, entitlements: null } },
    'organizationId refers to no organization',
  ],
  [
    'a credential of an unknown organization',
    credential({ organizationId: other }),
    'organizationId refers to no organization',
  ],
  [
    'a product with empty entitlements',
    {
      entity: 'product',
      id: PRODUCT,
      row: { id: PRODUCT, organizationId: ORGANIZATION, entitlements: new Uint8Array(0) },
    },
    'entitlements must have 1 to 8192 bytes',
  ],
  [
    'entitlements that are too long',
    license({ entitlements: new Uint8Array(8193) }),
    'entitlements must have 1 to 8192 bytes',
  ],
  [
    'a credential for an unknown product',
    credential({ productId: idOf(2, 9) }),
    'productId refers to no product of the organization',
  ],
  ['a credential for a product whose id is short', credential({ productId: short }), 'an id must have 16 bytes'],
  ['a short hash', credential({ secretHash: short }), 'secretHash must have 32 bytes'],
  ['a credential whose expiry is not a number', credential({ expiresAtMs: NaN }), 'expiresAtMs must be a number'],
  [
    'a license of an unknown product',
    license({ productId: idOf(2, 9) }),
    'productId refers to no product of the organization',
  ],
  [
    'a license of an unknown customer',
    license({ customerId: idOf(3, 9) }),
    'customerId refers to no customer of the organization',
  ],
  [
    'a license of an unknown organization',
    license({ organizationId: other }),
    'organizationId refers to no organization',
  ],
  ['a license without a key', license({ key: new Uint8Array(0) }), 'key must not be empty'],
  ['a license whose expiry is not a number', license({ expiresAtMs: NaN }), 'expiresAtMs must be a number'],
  [
    'a limit of half a machine',
    license({ maxMachines: 1.5 }),
    'maxMachines must be null or an integer from 0 to 2147483647',
  ],
  ['a grace period of 0 days', license({ graceDays: 0 }), 'graceDays must be null or an integer from 1 to 2147483647'],
  ['a negative used count', license({ used: -1 }), 'used must be an integer from 0 to 2147483647'],
  ['a machine without an id', { ...machine(1), machineId: new Uint8Array(0) }, 'machineId must not be empty'],
  ['a machine of an unknown license', { ...machine(1), licenseId: idOf(4, 9) }, 'licenseId refers to no license'],
  ['a machine whose used count is not a number', machine(1, true, NaN), 'used must be an integer from 0 to 2147483647'],
  [
    'a restriction of the type CUSTOMER',
    rule({ type: 'CUSTOMER', customerId: CUSTOMER }, { kind: 'RESTRICTION' }),
    'a restriction must have the type IP, HWID or COUNTRY',
  ],
  ['a country in lower-case letters', country('de'), 'country must be two letters from A to Z'],
  ['a country of three letters', country('DEU'), 'country must be two letters from A to Z'],
  ['a network with host bits', ip(four(0x0a000001, 8)), 'network must not have host bits set'],
  ['a prefix of 0 bits with host bits', ip(four(1, 0)), 'network must not have host bits set'],
  [
    'a prefix of 33 bits',
    ip(four(0, 33)),
    'network.prefixLength must be an integer from 0 to 32 for IPv4 and to 128 for IPv6',
  ],
  [
    'a prefix of -1 bits',
    ip(four(0, -1)),
    'network.prefixLength must be an integer from 0 to 32 for IPv4 and to 128 for IPv6',
  ],
  [
    'an IPv6 host bit',
    ip({ family: 6, words: [1, 2, 3, 4], prefixLength: 127 - 26 }),
    'network must not have host bits set',
  ],
  [
    'a rule of an unknown license',
    rule({ type: 'COUNTRY', country: 'DE' }, { scope: 'LICENSE', scopeId: idOf(4, 9) }),
    'scopeId refers to no license or product of the organization',
  ],
  [
    'a rule of an unknown organization',
    rule({ type: 'COUNTRY', country: 'DE' }, { organizationId: other }),
    'organizationId refers to no organization',
  ],
  [
    'a product rule without a product',
    rule({ type: 'COUNTRY', country: 'DE' }, { scope: 'PRODUCT' }),
    'scopeId must be null in the scope ORGANIZATION, and an id in the others',
  ],
  [
    'an organization rule with an id',
    rule({ type: 'COUNTRY', country: 'DE' }, { scopeId: PRODUCT }),
    'scopeId must be null in the scope ORGANIZATION, and an id in the others',
  ],
  [
    'a rule about an unknown customer',
    rule({ type: 'CUSTOMER', customerId: idOf(3, 9) }),
    'customerId refers to no customer of the organization',
  ],
  [
    'a rule about a machine without an id',
    rule({ type: 'HWID', machineId: new Uint8Array(0) }),
    'machineId must not be empty',
  ],
  ['the deletion of a product in use', { entity: 'product', id: PRODUCT, row: null }, 'other rows refer to the row'],
  ['the deletion of a customer in use', { entity: 'customer', id: CUSTOMER, row: null }, 'other rows refer to the row'],
  [
    'the deletion of an organization in use',
    { entity: 'organization', id: ORGANIZATION, row: null },
    'other rows refer to the row',
  ],
]

test.each(REJECTED)('rejects %s and applies the other changes of the batch', (_name, change, reason) => {
  const writer = createIndex({ reserve: 'small' })
  expect(writer.apply(tenant())).toEqual([])
  const before = writer.stats().rows
  expect(writer.apply([change, machine(2)])).toEqual([{ change, reason }])
  expect(writer.stats().rows).toEqual({ ...before, machine: 1 })
})

test('rejects a reference to a row of another organization', () => {
  const writer = createIndex({ reserve: 'small' })
  writer.apply([...tenant(), { entity: 'organization', id: other, row: { id: other } }])
  const foreign = [
    license({ organizationId: other }),
    rule({ type: 'COUNTRY', country: 'DE' }, { organizationId: other, scope: 'PRODUCT', scopeId: PRODUCT }),
    rule({ type: 'CUSTOMER', customerId: CUSTOMER }, { id: idOf(6, 1), organizationId: other }),
  ]
  expect(writer.apply(foreign).map(({ reason }) => reason)).toEqual([
    'productId refers to no product of the organization',
    'scopeId refers to no license or product of the organization',
    'customerId refers to no customer of the organization',
  ])
})

test('accepts the deletion of rows that do not exist', () => {
  const writer = createIndex({ reserve: 'small' })
  expect(
    writer.apply([
      { entity: 'license', id: idOf(4), row: null },
      { entity: 'rule', id: idOf(6), row: null },
      { entity: 'organization', id: idOf(1), row: null },
      machine(1, false, 0),
    ]),
  ).toEqual([])
})

test('throws when the hash key does not have 16 bytes', () => {
  expect(() => createIndex({ hashKey: new Uint8Array(8) })).toThrow('hashKey must have 16 bytes; got 8.')
})
