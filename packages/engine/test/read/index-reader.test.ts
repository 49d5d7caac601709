import { expect, test } from 'vitest'

import {
  type Change,
  CLAIM_SLOT,
  CODES,
  createCredentialView,
  createEntitlementsView,
  createIndex,
  type IndexReader,
  openIndex,
} from '../../src/index.ts'
import {
  credential,
  decide,
  idOf,
  LICENSE,
  license,
  machine,
  ORGANIZATION,
  PRODUCT,
  rule,
  tenant,
} from '../support/rows.ts'

const utf8 = new TextEncoder()
const SECRET = new Uint8Array(32).fill(7)

test('finds a credential by its secret, and reads its expiry from the row', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const view = createCredentialView()
  writer.apply([...tenant(), credential({ expiresAtMs: 5 })])
  const row = reader.findCredential(SECRET)
  expect(reader.findCredential(new Uint8Array(32))).toBe(-1)
  expect(reader.credential(row, view)).toBe(true)
  const organization = reader.findOrganization(ORGANIZATION)
  expect(view).toMatchObject({ organization, expiresAtMs: 5, addressRules: false })
  const { generation } = view
  writer.apply([credential({ expiresAtMs: 6 })])
  expect(reader.credential(row, view)).toBe(true)
  expect(view).toMatchObject({ generation, expiresAtMs: 6 })
})

test('returns another generation for a row with another credential, and false for a free row', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const view = createCredentialView()
  writer.apply([...tenant(), credential({})])
  const row = reader.findCredential(SECRET)
  reader.credential(row, view)
  const { generation } = view
  writer.apply([{ entity: 'credential', id: idOf(5), row: null }])
  expect(reader.credential(row, view)).toBe(false)
  writer.apply([credential({ id: idOf(5, 2), secretHash: new Uint8Array(32).fill(8) })])
  expect(reader.credential(row, view)).toBe(true)
  expect(view.generation).not.toBe(generation)
  expect(reader.credential(1_000_000, view)).toBe(false)
})

test('a credential gets another generation when its secret changes', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const view = createCredentialView()
  writer.apply([...tenant(), credential({})])
  const row = reader.findCredential(SECRET)
  reader.credential(row, view)
  const { generation } = view
  const changed = new Uint8Array(32).fill(8)
  writer.apply([credential({ secretHash: changed })])
  expect([reader.findCredential(SECRET), reader.findCredential(changed)]).toEqual([-1, row])
  reader.credential(row, view)
  expect(view.generation).not.toBe(generation)
})

test('reads from a credential whether its organization has IP or COUNTRY rules in any scope', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const view = createCredentialView()
  writer.apply([...tenant(), credential({})])
  const row = reader.findCredential(SECRET)
  const hasAddressRules = (): boolean => reader.credential(row, view) && view.addressRules
  const inLicense = { scope: 'LICENSE', scopeId: LICENSE } as const
  writer.apply([rule({ type: 'HWID', machineId: utf8.encode('m') })])
  expect(hasAddressRules()).toBe(false)
  writer.apply([rule({ type: 'COUNTRY', country: 'DE' }, { id: idOf(6, 2), ...inLicense })])
  expect(hasAddressRules()).toBe(true)
  writer.apply([rule({ type: 'HWID', machineId: utf8.encode('n') }, { id: idOf(6, 2), ...inLicense })])
  expect(hasAddressRules()).toBe(false)
  const network = { family: 6, words: [0, 0, 0, 0], prefixLength: 0 } as const
  writer.apply([rule({ type: 'IP', network }, { id: idOf(6, 3), ...inLicense })])
  expect(hasAddressRules()).toBe(true)
  writer.apply([{ entity: 'rule', id: idOf(6, 3), row: null }])
  expect(hasAddressRules()).toBe(false)
})

test('asks for the origin of a check exactly while the organization has rules that depend on it', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const needsOrigin = (hasOrigin: boolean): boolean => decide(reader, 'm', 'KEY', 0, hasOrigin).needsOrigin
  writer.apply([...tenant(), rule({ type: 'HWID', machineId: utf8.encode('m') })])
  expect([needsOrigin(false), needsOrigin(true)]).toEqual([false, false])
  writer.apply([rule({ type: 'COUNTRY', country: 'DE' })])
  expect([needsOrigin(false), needsOrigin(true)]).toEqual([true, false])
  writer.apply([{ entity: 'rule', id: idOf(6), row: null }])
  expect([needsOrigin(false), needsOrigin(true)]).toEqual([false, false])
})

test('writes the id of a row only while the row has the generation of the verdict', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const id = new Uint8Array(16)
  writer.apply([...tenant(), rule({ type: 'COUNTRY', country: 'DE' })])
  const verdict = decide(reader, 'm')
  expect(reader.licenseId(verdict.license, verdict.licenseGeneration, id)).toBe(true)
  expect(id).toEqual(LICENSE)
  expect(reader.productId(verdict.product, verdict.productGeneration, id)).toBe(true)
  expect(id).toEqual(idOf(2))
  expect(reader.ruleId(verdict.decidedBy, verdict.matchedGenerations[0]!, id)).toBe(true)
  expect(id).toEqual(idOf(6))
  expect(reader.organizationId(reader.findOrganization(ORGANIZATION), id)).toBe(true)
  expect(id).toEqual(ORGANIZATION)

  writer.apply([
    { entity: 'rule', id: idOf(6), row: null },
    rule({ type: 'COUNTRY', country: 'DE' }, { id: idOf(6, 2) }),
    { entity: 'license', id: LICENSE, row: null },
  ])
  expect(reader.ruleId(verdict.decidedBy, verdict.matchedGenerations[0]!, id)).toBe(false)
  writer.apply([license({ id: idOf(4, 2) })])
  const recycled = decide(reader, 'm')
  expect(recycled.license).toBe(verdict.license)
  expect(reader.licenseId(verdict.license, verdict.licenseGeneration, id)).toBe(false)
  expect(reader.licenseId(recycled.license, recycled.licenseGeneration, id)).toBe(true)
  expect(reader.licenseId(1_000_000, 1, id)).toBe(false)
})

test('a machine left behind by a deleted license holds no slot of the next license in the same row', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  writer.apply([...tenant(), machine(1)])
  const before = decide(reader, 'machine 1')
  expect(before.slot).toBe(0)
  // The license is deleted without its machine.
  writer.apply([{ entity: 'license', id: LICENSE, row: null }])
  writer.apply([license({ id: idOf(4, 2), used: 0 })])
  const after = decide(reader, 'machine 1')
  expect(after.license).toBe(before.license)
  expect(after.slot).toBe(CLAIM_SLOT)
  expect(writer.stats().rows.machine).toBe(1)
  writer.beginReload()
  writer.receive(tenant())
  writer.endReload()
  expect(writer.stats().rows.machine).toBe(0)
})

test('a rule left behind by a deleted license matches nothing until its own deletion', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const inLicense = { scope: 'LICENSE', scopeId: LICENSE } as const
  writer.apply([...tenant(), rule({ type: 'COUNTRY', country: 'DE' }, inLicense)])
  expect(CODES[decide(reader, 'm').code]).toBe('BLACKLISTED')
  writer.apply([{ entity: 'license', id: LICENSE, row: null }])
  writer.apply([license({ id: idOf(4, 2) })])
  expect(CODES[decide(reader, 'm').code]).toBe('VALID')
  // The new license in the row gets its own rule.
  writer.apply([rule({ type: 'COUNTRY', country: 'DE' }, { id: idOf(6, 2), scope: 'LICENSE', scopeId: idOf(4, 2) })])
  writer.apply([{ entity: 'rule', id: idOf(6), row: null }])
  expect(CODES[decide(reader, 'm').code]).toBe('BLACKLISTED')
  expect(writer.stats().rows).toMatchObject({ rule: 1, scope: 1 })
  writer.apply([{ entity: 'rule', id: idOf(6, 2), row: null }])
  expect(CODES[decide(reader, 'm').code]).toBe('VALID')
  expect(writer.stats().rows).toMatchObject({ rule: 0, scope: 0 })
})

test('finds rows that were added after the reader was opened', () => {
  const writer = createIndex()
  const reader = openIndex(writer.shared)
  writer.apply(tenant())
  for (let n = 0; n < 40_000; n += 1000) {
    writer.apply(
      Array.from({ length: 1000 }, (_, i) => license({ id: idOf(8, n + i), key: utf8.encode(`KEY ${n + i}`) })),
    )
    writer.apply(Array.from({ length: 1000 }, (_, i) => machine(n + i)))
    expect(CODES[decide(reader, `machine ${n}`, `KEY ${n + 999}`).code]).toBe('VALID')
    expect(decide(reader, `machine ${n + 999}`).slot).toBe(0)
  }
  const rows = writer.stats().rows
  expect(rows).toMatchObject({ license: 40_001, machine: 40_000 })
})

test('an empty index returns no rows', () => {
  const reader = openIndex(createIndex({ reserve: 'small' }).shared)
  expect(reader.findOrganization(ORGANIZATION)).toBe(-1)
  expect(reader.findCredential(SECRET)).toBe(-1)
  expect(CODES[decide(reader, 'm').code]).toBe('NOT_FOUND')
})

test('opens an index after structured cloning', () => {
  const writer = createIndex({ reserve: 'small' })
  writer.apply(tenant())
  expect(CODES[decide(openIndex(structuredClone(writer.shared)), '').code]).toBe('FINGERPRINT_REQUIRED')
})

test('a verdict contains a hash of the machine id that is the same in all readers of an index', () => {
  const writer = createIndex({ reserve: 'small', hashKey: new Uint8Array(16).fill(3) })
  const [one, other] = [openIndex(writer.shared), openIndex(writer.shared)]
  writer.apply([...tenant(), license({})])
  const hashOf = (reader: IndexReader, machineId: string): string => {
    const { machineHash0, machineHash1 } = decide(reader, machineId)
    return `${machineHash0}/${machineHash1}`
  }
  const ids = Array.from({ length: 500 }, (_, i) => `machine ${i}`)
  expect(new Set(ids.map((id) => hashOf(one, id))).size).toBe(ids.length)
  expect(ids.map((id) => hashOf(other, id))).toEqual(ids.map((id) => hashOf(one, id)))
  expect(hashOf(one, '')).toBe('0/0')
})

test('findLicense finds a key only in its own organization, and writes the id of the license', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const other = idOf(1, 2)
  writer.apply([...tenant(), { entity: 'organization', id: other, row: { id: other } }])
  const [organization, foreign] = [reader.findOrganization(ORGANIZATION), reader.findOrganization(other)]
  const id = new Uint8Array(16)
  const find = (row: number, text: string): number =>
    reader.findLicense(row, 0, utf8.encode(`${text} and more`), text.length, id)
  expect(find(organization, 'KEY')).toBe(decide(reader, '').license)
  expect(id).toEqual(LICENSE)
  expect([find(foreign, 'KEY'), find(organization, 'KEY '), find(1_000_000, 'KEY')]).toEqual([-1, -1, -1])
  writer.apply([{ entity: 'license', id: LICENSE, row: null }])
  expect(find(organization, 'KEY')).toBe(-1)
})

test('findLicense ignores access rules and the state of the license', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  writer.apply([...tenant(), rule({ type: 'COUNTRY', country: 'DE' })])
  const found = (['active', 'suspended', 'revoked'] as const).map((status) => {
    writer.apply([license({ status, expiresAtMs: 0 })])
    return reader.findLicense(reader.findOrganization(ORGANIZATION), 0, utf8.encode('KEY'), 3, new Uint8Array(16)) > 0
  })
  expect(found).toEqual([true, true, true])
})

test('finds only licenses of the product that the credential is bound to', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const other = idOf(2, 2)
  const row = { id: other, organizationId: ORGANIZATION, entitlements: null }
  writer.apply([...tenant(), { entity: 'product', id: other, row }, credential({ productId: other })])
  const view = createCredentialView()
  expect(reader.credential(reader.findCredential(new Uint8Array(32).fill(7)), view)).toBe(true)
  expect(view.product).toBe(reader.findProduct(other))
  const find = (product: number): number =>
    reader.findLicense(view.organization, product, utf8.encode('KEY'), 3, new Uint8Array(16))
  expect(find(view.product)).toBe(-1)
  expect(find(reader.findProduct(PRODUCT))).toBeGreaterThan(0)
  // The credential refers to the product, so the product cannot be removed.
  const removal: Change = { entity: 'product', id: other, row: null }
  expect(writer.apply([removal])).toEqual([{ change: removal, reason: 'other rows refer to the row' }])
  expect(writer.apply([removal, { entity: 'credential', id: idOf(5), row: null }])).toEqual([])
  expect(reader.findProduct(other)).toBe(-1)
})

test('reads the bytes of entitlements unless the caller has them already', () => {
  const writer = createIndex({ reserve: 'small' })
  const reader = openIndex(writer.shared)
  const product = (entitlements: Uint8Array | null): Change => {
    return { entity: 'product', id: PRODUCT, row: { id: PRODUCT, organizationId: ORGANIZATION, entitlements } }
  }
  writer.apply([...tenant(), product(utf8.encode('{"a": 1}'))])
  const view = createEntitlementsView()
  const { license: row, licenseGeneration } = decide(reader, 'm')
  const read = (isKnown: boolean): [boolean, string, string] => {
    view.productBytes.fill(0)
    view.licenseBytes.fill(0)
    const isThere = reader.entitlements(row, licenseGeneration, view, () => isKnown)
    const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)))
    return [isThere, text(view.productBytes), text(view.licenseBytes)]
  }
  expect(read(false)).toEqual([true, '{"a": 1}', ''])
  const { productGeneration } = view
  expect(read(true)).toEqual([true, '', ''])
  writer.apply([license({ entitlements: utf8.encode('{"b": 2}') })])
  expect(read(false)).toEqual([true, '{"a": 1}', '{"b": 2}'])
  expect(view.productGeneration).toBe(productGeneration)
  writer.apply([product(utf8.encode('{"a": 2}'))])
  expect(read(false)).toEqual([true, '{"a": 2}', '{"b": 2}'])
  expect(view.productGeneration).not.toBe(productGeneration)
  writer.apply([product(null), license({})])
  expect(read(false)).toEqual([true, '', ''])
  expect([view.product, view.license]).toEqual([0, 0])
  writer.apply([{ entity: 'license', id: LICENSE, row: null }])
  expect(read(false)[0]).toBe(false)
})
