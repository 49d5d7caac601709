import { afterEach, expect, test, vi } from 'vitest'

import {
  type Change,
  CODES,
  createCheck,
  createIndex,
  createVerdict,
  type IndexWriter,
  openIndex,
} from '../../src/index.ts'
import { WriteLock } from '../../src/write/write-lock.ts'

const LICENSES = 2_500

const idOf = (kind: number, n: number): Uint8Array => {
  const id = new Uint8Array(16)
  id[0] = kind
  new DataView(id.buffer).setUint32(12, n)
  return id
}
const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text)
const organizationId = idOf(1, 1)
const productId = idOf(2, 1)
const merged = idOf(3, 1)
const remaining = idOf(3, 2)

const license = (n: number, customerId: Uint8Array): Change => ({
  entity: 'license',
  id: idOf(4, n),
  row: {
    id: idOf(4, n),
    organizationId,
    productId,
    customerId,
    key: bytesOf(`key-${n}`),
    status: 'active',
    expiresAtMs: Infinity,
    maxMachines: null,
    leaseSeconds: null,
    graceDays: null,
    used: 0,
    entitlements: null,
  },
})

const rule = (customerId: Uint8Array): Change => ({
  entity: 'rule',
  id: idOf(5, 1),
  row: {
    id: idOf(5, 1),
    organizationId,
    kind: 'BLACKLIST',
    mode: 'ENFORCE',
    scope: 'ORGANIZATION',
    scopeId: null,
    expiresAtMs: Infinity,
    allowSuspendedOrExpired: false,
    type: 'CUSTOMER',
    customerId,
  },
})

function world(): IndexWriter {
  const writer = createIndex({ reserve: 'large' })
  writer.apply([
    { entity: 'organization', id: organizationId, row: { id: organizationId } },
    { entity: 'product', id: productId, row: { id: productId, organizationId, entitlements: null } },
    { entity: 'customer', id: merged, row: { id: merged, organizationId } },
    { entity: 'customer', id: remaining, row: { id: remaining, organizationId } },
    ...Array.from({ length: LICENSES }, (_, n) => license(n, merged)),
    rule(merged),
  ])
  return writer
}

/** Collects the codes of checks of a sample of the licenses after every write section. */
function watch(writer: IndexWriter): { codes: Set<string | undefined>; sections: () => number } {
  const reader = openIndex(writer.shared)
  const check = { ...createCheck(), organization: reader.findOrganization(organizationId) }
  const verdict = createVerdict()
  const codes = new Set<string | undefined>()
  let sections = 0
  // oxlint-disable-next-line typescript/unbound-method -- called with its own `this` below
  const original = WriteLock.prototype.section
  vi.spyOn(WriteLock.prototype, 'section').mockImplementation(function (this: WriteLock, ...section) {
    original.apply(this, section)
    sections++
    for (let n = 0; n < LICENSES; n += 100) {
      check.licenseKey = bytesOf(`key-${n}`)
      check.licenseKeyLength = check.licenseKey.length
      reader.decide(check, 1, verdict)
      codes.add(CODES[verdict.code])
    }
  })
  return { codes, sections: () => sections }
}

afterEach(() => void vi.restoreAllMocks())

const moved = (): Change[] => Array.from({ length: LICENSES }, (_, n) => license(n, remaining))

test('rejects every check while a blacklisted customer is merged into another', () => {
  const writer = world()
  const seen = watch(writer)
  const gone: Change = { entity: 'customer', id: merged, row: null }
  expect(writer.apply([gone, ...moved(), rule(remaining)])).toEqual([])
  expect(seen.sections()).toBe(1)
  expect([...seen.codes]).toEqual(['BLACKLISTED'])
  expect(writer.stats().rows).toMatchObject({ customer: 1, rule: 1 })
  expect(writer.apply([{ entity: 'rule', id: idOf(5, 1), row: null }])).toEqual([])
  expect(seen.codes).toContain('VALID')
})

test('rejects every check while a reload applies the merge', () => {
  const writer = world()
  const seen = watch(writer)
  writer.beginReload()
  writer.receive([
    { entity: 'organization', id: organizationId, row: { id: organizationId } },
    { entity: 'product', id: productId, row: { id: productId, organizationId, entitlements: null } },
    { entity: 'customer', id: remaining, row: { id: remaining, organizationId } },
  ])
  writer.receive([rule(remaining)])
  for (const change of moved()) writer.receive([change])
  expect(seen.sections()).toBe(0)
  expect(writer.endReload()).toEqual([])
  expect(seen.sections()).toBeGreaterThan(0)
  expect([...seen.codes]).toEqual(['BLACKLISTED'])
  expect(writer.stats().rows).toMatchObject({ customer: 1, rule: 1, license: LICENSES })
})
