import { expect, test } from 'vitest'

import { type Change, createIndex, type Network } from '../../src/index.ts'
import { credential, CUSTOMER, idOf, license, machine, ORGANIZATION, PRODUCT, rule, tenant } from '../support/rows.ts'

const other = idOf(1, 2)
const four = (word: number, prefixLength: number): Network => ({ family: 4, words: [word], prefixLength })
const country = (code: string): Change => rule({ type: 'COUNTRY', country: code })
const ip = (network: Network): Change => rule({ type: 'IP', network })
const short = new Uint8Array(15)

const REJECTED: [string, Change, string][] = [
  ['an id of 15 bytes', { entity: 'organization', id: short, row: { id: short } }, 'an id is not 16 bytes long'],
  [
    'a product of an unknown organization',
    { entity: 'product', id: idOf(2, 9), row: { id: idOf(2, 9), organizationId: other } },
    'the organization is unknown',
  ],
  ['a credential of an unknown organization', credential({ organizationId: other }), 'the organization is unknown'],
  ['a short hash', credential({ secretHash: short }), 'the hash of the secret is not 32 bytes long'],
  ['a credential without a time', credential({ expiresAtMs: NaN }), 'the expiry is not a time'],
  ['a license of an unknown product', license({ productId: idOf(2, 9) }), 'the product is unknown in the organization'],
  [
    'a license of an unknown customer',
    license({ customerId: idOf(3, 9) }),
    'the customer is unknown in the organization',
  ],
  ['a license of an unknown organization', license({ organizationId: other }), 'the organization is unknown'],
  ['a license without a key', license({ key: new Uint8Array(0) }), 'the license key is empty'],
  ['a license without a time', license({ expiresAtMs: NaN }), 'the expiry is not a time'],
  ['half a machine', license({ maxMachines: 1.5 }), 'the machine limit is not a count'],
  ['less than no machines', license({ used: -1 }), 'the used count is not a count'],
  ['a machine without an id', { ...machine(1), machineId: new Uint8Array(0) }, 'a machine id is empty'],
  ['a machine of an unknown license', { ...machine(1), licenseId: idOf(4, 9) }, 'the license is unknown'],
  ['a machine without a count', machine(1, true, NaN), 'the used count is not a count'],
  ['a country in small letters', country('de'), 'the country is not two capital letters'],
  ['a country of three letters', country('DEU'), 'the country is not two capital letters'],
  ['a network with host bits', ip(four(0x0a000001, 8)), 'the network has host bits'],
  ['all addresses but one', ip(four(1, 0)), 'the network has host bits'],
  ['a prefix of 33 bits', ip(four(0, 33)), 'the prefix length does not fit the address'],
  ['a prefix of -1 bits', ip(four(0, -1)), 'the prefix length does not fit the address'],
  ['an IPv6 host bit', ip({ family: 6, words: [1, 2, 3, 4], prefixLength: 127 - 26 }), 'the network has host bits'],
  [
    'a rule of an unknown license',
    rule({ type: 'COUNTRY', country: 'DE' }, { scope: 'LICENSE', scopeId: idOf(4, 9) }),
    'the scope is unknown in the organization',
  ],
  [
    'a rule of an organization that is none',
    rule({ type: 'COUNTRY', country: 'DE' }, { organizationId: other }),
    'the organization is unknown',
  ],
  [
    'a product rule without a product',
    rule({ type: 'COUNTRY', country: 'DE' }, { scope: 'PRODUCT' }),
    'the scope id does not fit the scope',
  ],
  [
    'an organization rule with an id',
    rule({ type: 'COUNTRY', country: 'DE' }, { scopeId: PRODUCT }),
    'the scope id does not fit the scope',
  ],
  [
    'a rule about an unknown customer',
    rule({ type: 'CUSTOMER', customerId: idOf(3, 9) }),
    'the customer is unknown in the organization',
  ],
  [
    'a rule about a machine without an id',
    rule({ type: 'HWID', machineId: new Uint8Array(0) }),
    'a machine id is empty',
  ],
  ['the deletion of a product in use', { entity: 'product', id: PRODUCT, row: null }, 'other rows refer to it'],
  ['the deletion of a customer in use', { entity: 'customer', id: CUSTOMER, row: null }, 'other rows refer to it'],
  [
    'the deletion of an organization in use',
    { entity: 'organization', id: ORGANIZATION, row: null },
    'other rows refer to it',
  ],
]

test.each(REJECTED)('%s is rejected, and the rest of the batch applied', (_name, change, reason) => {
  const writer = createIndex({ reserve: 'small' })
  expect(writer.apply(tenant())).toEqual([])
  const before = writer.stats().rows
  expect(writer.apply([change, machine(1)])).toEqual([{ change, reason }])
  expect(writer.stats().rows).toEqual({ ...before, machine: 1 })
})

test('a row of another organization is no parent', () => {
  const writer = createIndex({ reserve: 'small' })
  writer.apply([...tenant(), { entity: 'organization', id: other, row: { id: other } }])
  const foreign = [
    license({ organizationId: other }),
    rule({ type: 'COUNTRY', country: 'DE' }, { organizationId: other, scope: 'PRODUCT', scopeId: PRODUCT }),
    rule({ type: 'CUSTOMER', customerId: CUSTOMER }, { organizationId: other }),
  ]
  expect(writer.apply(foreign).map(({ reason }) => reason)).toEqual([
    'the product is unknown in the organization',
    'the scope is unknown in the organization',
    'the customer is unknown in the organization',
  ])
})

test('deleting what is not there is no fault', () => {
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

test('a hash key of another length is refused', () => {
  expect(() => createIndex({ hashKey: new Uint8Array(8) })).toThrow('the hash key is not 16 bytes long')
})
