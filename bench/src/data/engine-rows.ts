/** The rows of the engine's microbenchmark. Each row is computed from its ordinal and not stored. */

import type { AccessRuleRecord, Change, RuleMatch } from '@keyward/engine'

export const ORGANIZATIONS = 100
const PRODUCTS_EACH = 3
export const COUNTRY = (0x44 << 8) | 0x45
export const KEY_BYTES = 19
export const MACHINE_BYTES = 24

export interface Sizes {
  licenses: number
  machines: number
  rules: number
  prefixes: number
  inserts: number
  checks: number
}

export function idOf(kind: number, n: number): Uint8Array {
  const id = new Uint8Array(16)
  const view = new DataView(id.buffer)
  view.setUint32(0, Math.imul(n + 1, 0x9e3779b1))
  view.setUint32(4, n)
  view.setUint8(15, kind)
  return id
}

export const organizationId = (n: number): Uint8Array => idOf(1, n % ORGANIZATIONS)
const productId = (n: number): Uint8Array => idOf(2, (n % ORGANIZATIONS) * PRODUCTS_EACH + (n % PRODUCTS_EACH))
const customerId = (n: number): Uint8Array => idOf(3, n)
export const licenseId = (n: number): Uint8Array => idOf(4, n)
export const ruleId = (n: number): Uint8Array => idOf(5, n)

function writeDigits(n: number, digits: number, out: Uint8Array, at: number): void {
  let rest = n
  for (let i = digits - 1; i >= 0; i--) {
    out[at + i] = 48 + (rest % 10)
    rest = Math.floor(rest / 10)
  }
}

export function writeKey(n: number, out: Uint8Array): void {
  out.fill(75, 0, KEY_BYTES)
  writeDigits(n, 9, out, 5)
}

export function writeMachine(license: number, machine: number, out: Uint8Array): void {
  out.fill(77, 0, MACHINE_BYTES)
  writeDigits(license, 9, out, 2)
  writeDigits(machine, 9, out, 13)
}

function keyOf(n: number): Uint8Array {
  const key = new Uint8Array(KEY_BYTES)
  writeKey(n, key)
  return key
}

export function machineOf(license: number, machine: number): Uint8Array {
  const id = new Uint8Array(MACHINE_BYTES)
  writeMachine(license, machine, id)
  return id
}

/** Mixes a number into 32 bits. */
export function scatter(n: number): number {
  let h = Math.imul(n ^ (n >>> 16), 0x45d9f3b)
  h = Math.imul(h ^ (h >>> 16), 0x45d9f3b)
  return (h ^ (h >>> 16)) >>> 0
}

export function* tenants(sizes: Sizes): Generator<Change> {
  for (let n = 0; n < ORGANIZATIONS; n++) {
    yield { entity: 'organization', id: organizationId(n), row: { id: organizationId(n) } }
  }
  for (let n = 0; n < ORGANIZATIONS * PRODUCTS_EACH; n++) {
    const row = { id: idOf(2, n), organizationId: organizationId(Math.floor(n / PRODUCTS_EACH)), entitlements: null }
    yield { entity: 'product', id: row.id, row }
  }
  for (let n = 0; n < sizes.licenses; n++) {
    const row = { id: customerId(n), organizationId: organizationId(n) }
    yield { entity: 'customer', id: row.id, row }
  }
}

export function* licenses(sizes: Sizes): Generator<Change> {
  for (let n = 0; n < sizes.licenses; n++) {
    const id = licenseId(n)
    const row = {
      id,
      organizationId: organizationId(n),
      productId: productId(n),
      customerId: customerId(n),
      key: keyOf(n),
      status: 'active',
      expiresAtMs: Infinity,
      maxMachines: sizes.machines + 2,
      leaseSeconds: null,
      used: sizes.machines,
      entitlements: null,
    } as const
    yield { entity: 'license', id, row }
  }
}

export function* machines(sizes: Sizes): Generator<Change> {
  for (let n = 0; n < sizes.licenses; n++) {
    for (let m = 0; m < sizes.machines; m++) {
      yield { entity: 'machine', licenseId: licenseId(n), machineId: machineOf(n, m), held: true, used: sizes.machines }
    }
  }
}

/** Yields access rules of odd-numbered organizations. No rule matches an IPv4 address of 32.0.0.0 or above. */
export function* rules(sizes: Sizes): Generator<Change> {
  for (let n = 0; n < sizes.rules; n++) {
    const license = (2 * n + 1) % sizes.licenses
    const scoped = n % 20 === 7
    const row: AccessRuleRecord = {
      id: ruleId(n),
      organizationId: organizationId(license),
      kind: n % 7 === 3 ? 'EXCLUSION' : 'BLACKLIST',
      mode: 'ENFORCE',
      scope: scoped ? 'LICENSE' : 'ORGANIZATION',
      scopeId: scoped ? licenseId(license) : null,
      expiresAtMs: Infinity,
      allowSuspendedOrExpired: false,
      ...matchOf(n),
    }
    yield { entity: 'rule', id: row.id, row }
  }
}

function matchOf(n: number): RuleMatch {
  if (n % 10 < 6) return { type: 'IP', network: { family: 4, words: [scatter(n) >>> 3], prefixLength: 32 } }
  if (n % 10 < 8) {
    return { type: 'IP', network: { family: 6, words: [0x20010db8, scatter(n), 0, 0], prefixLength: 64 } }
  }
  return { type: 'HWID', machineId: machineOf(n, 999) }
}

/** Yields blacklists of networks with prefix lengths of 16, 23, 28, 31 and 32 bits, about equally often. */
export function* prefixes(count: number): Generator<Change> {
  for (let n = 0; n < count; n++) {
    const prefixLength = 32 - (scatter(n ^ 0x5555) % 5) ** 2
    const word = (scatter(n) & (-1 << (32 - prefixLength))) >>> 0
    const id = ruleId(n)
    const row: AccessRuleRecord = {
      id,
      organizationId: organizationId(0),
      kind: 'BLACKLIST',
      mode: 'ENFORCE',
      scope: 'ORGANIZATION',
      scopeId: null,
      expiresAtMs: Infinity,
      allowSuspendedOrExpired: false,
      type: 'IP',
      network: { family: 4, words: [word], prefixLength },
    }
    yield { entity: 'rule', id, row }
  }
}
