import type {
  AccessRuleRecord,
  Change,
  CredentialRecord,
  LicenseRecord,
  MachineChange,
  RuleMatch,
  Verdict,
} from '../../src/index.ts'
import { createCheck, createVerdict, type IndexReader } from '../../src/index.ts'

const utf8 = new TextEncoder()

/** Returns an id made of a kind and a number. */
export function idOf(kind: number, n = 0): Uint8Array {
  const id = new Uint8Array(16)
  new DataView(id.buffer).setUint32(0, n)
  id[15] = kind
  return id
}

export const ORGANIZATION = idOf(1)
export const PRODUCT = idOf(2)
export const CUSTOMER = idOf(3)
export const LICENSE = idOf(4)

export function tenant(): Change[] {
  return [
    { entity: 'organization', id: ORGANIZATION, row: { id: ORGANIZATION } },
    { entity: 'product', id: PRODUCT, row: { id: PRODUCT, organizationId: ORGANIZATION, entitlements: null } },
    { entity: 'customer', id: CUSTOMER, row: { id: CUSTOMER, organizationId: ORGANIZATION } },
    license({}),
  ]
}

export function license(fields: Partial<LicenseRecord>): Change {
  const row: LicenseRecord = {
    id: LICENSE,
    organizationId: ORGANIZATION,
    productId: PRODUCT,
    customerId: CUSTOMER,
    key: utf8.encode('KEY'),
    status: 'active',
    expiresAtMs: Infinity,
    maxMachines: 5,
    leaseSeconds: null,
    graceDays: null,
    used: 0,
    entitlements: null,
    ...fields,
  }
  return { entity: 'license', id: row.id, row }
}

export function credential(fields: Partial<CredentialRecord>): Change {
  const row: CredentialRecord = {
    id: idOf(5),
    organizationId: ORGANIZATION,
    secretHash: new Uint8Array(32).fill(7),
    productId: null,
    expiresAtMs: Infinity,
    ...fields,
  }
  return { entity: 'credential', id: row.id, row }
}

export function rule(match: RuleMatch, fields: Partial<Omit<AccessRuleRecord, keyof RuleMatch>> = {}): Change {
  const row: AccessRuleRecord = {
    id: idOf(6),
    organizationId: ORGANIZATION,
    kind: 'BLACKLIST',
    mode: 'ENFORCE',
    scope: 'ORGANIZATION',
    scopeId: null,
    expiresAtMs: Infinity,
    allowSuspendedOrExpired: false,
    ...fields,
    ...match,
  }
  return { entity: 'rule', id: row.id, row }
}

export function machine(n: number, held = true, used = 1): MachineChange {
  return { entity: 'machine', licenseId: LICENSE, machineId: utf8.encode(`machine ${n}`), held, used }
}

/** Returns the verdict of a check in the organization of `tenant`. */
export function decide(reader: IndexReader, machineId: string, key = 'KEY', nowMs = 0, hasOrigin = true): Verdict {
  const check = createCheck()
  const verdict = createVerdict()
  check.organization = reader.findOrganization(ORGANIZATION)
  check.licenseKeyLength = utf8.encodeInto(key, check.licenseKey).written
  check.machineIdLength = utf8.encodeInto(machineId, check.machineId).written
  check.country = 0x4445
  check.hasOrigin = hasOrigin
  reader.decide(check, nowMs, verdict)
  return verdict
}
