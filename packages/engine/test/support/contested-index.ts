/**
 * An index that is written continuously. The facts below hold before and after every write section, but not within one,
 * so a reader whose verdict contradicts them has read an intermediate state.
 *
 * - The guarded license is suspended, or it is active and blacklisted. So a check of it is never VALID.
 * - The license's used count, limit and expiry are the same number.
 * - The known machine holds its slot while the set of machines grows and shrinks.
 * - A permanent rule blacklists the watched address while the trie around it changes.
 */

import {
  type AccessRuleRecord,
  type Change,
  type Check,
  CODE,
  type IndexReader,
  type IndexWriter,
  type LicenseRecord,
  type Verdict,
} from '../../src/index.ts'

const utf8 = new TextEncoder()
const FILLERS = 300

const ids = {
  organization: 1,
  product: 2,
  customer: 3,
  guarded: 4,
  counted: 5,
  holder: 6,
  watched: 7,
  rule: 8,
  stays: 9,
}

function idOf(kind: number, n = 0): Uint8Array {
  const id = new Uint8Array(16)
  const view = new DataView(id.buffer)
  view.setUint32(0, n)
  view.setUint8(15, kind)
  return id
}

function license(kind: number, fields: Partial<LicenseRecord>): Change {
  const row: LicenseRecord = {
    id: idOf(kind),
    organizationId: idOf(ids.organization),
    productId: idOf(ids.product),
    customerId: idOf(ids.customer),
    key: utf8.encode(`license ${kind}`),
    status: 'active',
    expiresAtMs: Infinity,
    maxMachines: 1,
    leaseSeconds: null,
    graceDays: null,
    used: 1,
    entitlements: null,
    ...fields,
  }
  return { entity: 'license', id: row.id, row }
}

function addressRule(id: Uint8Array, of: number, word: number, prefixLength: number): Change {
  const row: AccessRuleRecord = {
    id,
    organizationId: idOf(ids.organization),
    kind: 'BLACKLIST',
    mode: 'ENFORCE',
    scope: 'LICENSE',
    scopeId: idOf(of),
    expiresAtMs: Infinity,
    allowSuspendedOrExpired: false,
    type: 'IP',
    network: { family: 4, words: [word], prefixLength },
  }
  return { entity: 'rule', id, row }
}

function machine(n: number, held: boolean): Change {
  return { entity: 'machine', licenseId: idOf(ids.holder), machineId: utf8.encode(`machine ${n}`), held, used: 1 }
}

export function begin(writer: IndexWriter): void {
  const organizationId = idOf(ids.organization)
  writer.apply([
    { entity: 'organization', id: organizationId, row: { id: organizationId } },
    { entity: 'product', id: idOf(ids.product), row: { id: idOf(ids.product), organizationId, entitlements: null } },
    { entity: 'customer', id: idOf(ids.customer), row: { id: idOf(ids.customer), organizationId } },
    license(ids.guarded, { status: 'suspended' }),
    license(ids.counted, { maxMachines: 1, used: 1, expiresAtMs: 1 }),
    license(ids.holder, {}),
    license(ids.watched, {}),
    machine(0, true),
    addressRule(idOf(ids.stays), ids.watched, 0x0a000000, 8),
  ])
}

/** Applies one write section. A `long` section stays open longer, because it also writes FILLERS machines and rules. */
export function step(writer: IndexWriter, n: number, long: boolean): void {
  const guard = addressRule(idOf(ids.rule), ids.guarded, 0, 0)
  const guarded = n % 2 === 0
  const changes: Change[] = [
    license(ids.guarded, { status: guarded ? 'active' : 'suspended' }),
    license(ids.counted, { maxMachines: n + 2, used: n + 2, expiresAtMs: n + 2 }),
    guarded ? guard : { entity: 'rule', id: guard.entity === 'machine' ? guard.licenseId : guard.id, row: null },
  ]
  const fillers = long ? FILLERS : 0
  for (let i = 0; i < fillers; i++) {
    const other = 1 + ((n * FILLERS + i) % (20 * FILLERS))
    const present = Math.floor((n * FILLERS + i) / (20 * FILLERS)) % 2 === 0
    changes.push(machine(other, present))
    const word = (0x0a000000 | (Math.imul(other, 0x9e3779b1) >>> 8)) >>> 0
    const rule = addressRule(idOf(10, other), ids.watched, word, 32)
    changes.push(present || rule.entity !== 'rule' ? rule : { ...rule, row: null })
  }
  writer.apply(changes)
}

/** Runs a check of one of the facts. Returns whether the verdict contradicts the fact. */
export function isImpossible(reader: IndexReader, check: Check, verdict: Verdict, n: number): boolean {
  check.organization = reader.findOrganization(idOf(ids.organization))
  const kind = [ids.guarded, ids.counted, ids.holder, ids.watched][n % 4] ?? ids.guarded
  check.licenseKey = utf8.encode(`license ${kind}`)
  check.licenseKeyLength = check.licenseKey.length
  check.machineId = utf8.encode('machine 0')
  check.machineIdLength = check.machineId.length
  check.addressFamily = kind === ids.holder ? 0 : 4
  check.a0 = 0x0a123456
  reader.decide(check, 0, verdict)
  if (verdict.busy) return false
  switch (kind) {
    case ids.guarded:
      return verdict.code !== CODE.SUSPENDED && verdict.code !== CODE.BLACKLISTED
    case ids.counted:
      return verdict.used !== verdict.max || verdict.max !== verdict.expiresAtMs
    case ids.holder:
      return verdict.code !== CODE.VALID || verdict.slot !== 0
    default:
      return verdict.code !== CODE.BLACKLISTED || verdict.matchedCount < 1
  }
}
