import { readdirSync, readFileSync } from 'node:fs'

import { expect, test } from 'vitest'

import type { AccessRuleRecord, Change, LicenseStatus, Network, RuleMatch } from '../../src/index.ts'
import { createIndex, NOT_STARTED, openIndex } from '../../src/index.ts'
import { decideNow } from '../support/comparison.ts'
import { hex } from '../support/naive.ts'

/** One scenario of a file of cases. packages/engine/test/cases/README.md describes its fields. */
interface Scenario {
  scenario: string
  world: {
    organizations?: string[]
    products: { name: string; organization?: string }[]
    customers: { name: string; organization?: string }[]
    licenses: {
      name: string
      key: string
      product: string
      customer: string
      organization?: string
      status?: LicenseStatus
      expiresInMs?: number
      isUnstarted?: boolean
      leaseSeconds?: number
      graceDays?: number
      maxMachines?: number
      machines?: string[]
    }[]
    rules: {
      name: string
      kind: AccessRuleRecord['kind']
      mode?: AccessRuleRecord['mode']
      type: RuleMatch['type']
      value: string
      scope: AccessRuleRecord['scope']
      of?: string
      organization?: string
      expiresInMs?: number
      allowSuspendedOrExpired?: boolean
    }[]
  }
  cases: {
    case: string
    check: { key: string; machineId?: string; ip?: string; country?: string; organization?: string; product?: string }
    code: string
    decidedBy?: string
    matched?: string[]
    restricted?: string[]
    graceEndsInMs?: number
    slot?: string
    used?: number
    max?: number
  }[]
}

const NOW = 1_800_000_000_000
const DEFAULT_ORGANIZATION = 'vendor'
const folder = new URL('../cases/', import.meta.url)
const utf8 = new TextEncoder()

/** Assigns ids to names, in ascending order of first use, so that an older rule has a smaller id. */
class Names {
  readonly #ids = new Map<string, Uint8Array>()

  id(kind: string, name: string): Uint8Array {
    const known = this.#ids.get(`${kind} ${name}`)
    if (known !== undefined) return known
    const id = new Uint8Array(16)
    new DataView(id.buffer).setUint32(0, this.#ids.size + 1)
    this.#ids.set(`${kind} ${name}`, id)
    return id
  }

  nameOf(kind: string, id: string | null): string | undefined {
    for (const [name, bytes] of this.#ids) {
      if (name.startsWith(`${kind} `) && hex(bytes) === id) return name.slice(kind.length + 1)
    }
    return undefined
  }
}

function changesOf({ world }: Scenario, names: Names): Change[] {
  const organizationOf = (name = DEFAULT_ORGANIZATION): Uint8Array => names.id('organization', name)
  const changes: Change[] = []
  for (const name of world.organizations ?? [DEFAULT_ORGANIZATION]) {
    changes.push({ entity: 'organization', id: organizationOf(name), row: { id: organizationOf(name) } })
  }
  for (const { name, organization } of world.products) {
    const row = { id: names.id('product', name), organizationId: organizationOf(organization), entitlements: null }
    changes.push({ entity: 'product', id: row.id, row })
  }
  for (const { name, organization } of world.customers) {
    const row = { id: names.id('customer', name), organizationId: organizationOf(organization) }
    changes.push({ entity: 'customer', id: row.id, row })
  }
  for (const license of world.licenses) changes.push(...licenseChanges(license, names))
  for (const rule of world.rules) {
    const id = names.id('rule', rule.name)
    const row: AccessRuleRecord = {
      id,
      organizationId: organizationOf(rule.organization),
      kind: rule.kind,
      mode: rule.mode ?? 'ENFORCE',
      scope: rule.scope,
      scopeId: rule.of === undefined ? null : names.id(rule.scope === 'LICENSE' ? 'license' : 'product', rule.of),
      expiresAtMs: rule.expiresInMs === undefined ? Infinity : NOW + rule.expiresInMs,
      allowSuspendedOrExpired: rule.allowSuspendedOrExpired ?? false,
      ...matchOf(rule.type, rule.value, names),
    }
    changes.push({ entity: 'rule', id, row })
  }
  return changes
}

function licenseChanges(license: Scenario['world']['licenses'][number], names: Names): Change[] {
  const id = names.id('license', license.name)
  const machines = license.machines ?? []
  const row = {
    id,
    organizationId: names.id('organization', license.organization ?? DEFAULT_ORGANIZATION),
    productId: names.id('product', license.product),
    customerId: names.id('customer', license.customer),
    key: utf8.encode(license.key),
    status: license.status ?? 'active',
    expiresAtMs: license.isUnstarted
      ? NOT_STARTED
      : license.expiresInMs === undefined
        ? Infinity
        : NOW + license.expiresInMs,
    maxMachines: license.maxMachines ?? null,
    leaseSeconds: license.leaseSeconds ?? null,
    graceDays: license.graceDays ?? null,
    used: machines.length,
    entitlements: null,
  } as const
  return [
    { entity: 'license', id, row },
    ...machines.map((machine): Change => {
      const machineId = utf8.encode(machine)
      return { entity: 'machine', licenseId: id, machineId, held: true, used: machines.length }
    }),
  ]
}

function matchOf(type: RuleMatch['type'], value: string, names: Names): RuleMatch {
  if (type === 'IP') return { type, network: parseNetwork(value) }
  if (type === 'HWID') return { type, machineId: utf8.encode(value) }
  if (type === 'COUNTRY') return { type, country: value }
  return { type, customerId: names.id('customer', value) }
}

function readScenarios(file: string): Scenario[] {
  const content: unknown = JSON.parse(readFileSync(new URL(file, folder), 'utf8'))
  if (!isScenarios(content)) throw new Error(`${file} is not a list of scenarios`)
  return content
}

function isScenarios(content: unknown): content is Scenario[] {
  return (
    Array.isArray(content) && content.every((one: unknown) => typeof one === 'object' && one !== null && 'cases' in one)
  )
}

/** Parses a network in canonical form. The service has a separate, strict parser. */
function parseNetwork(text: string): Network {
  const [address = '', length] = text.split('/')
  if (!address.includes(':')) {
    const words = [address.split('.').reduce((word, byte) => word * 256 + Number(byte), 0)] as const
    return { family: 4, words, prefixLength: Number(length ?? 32) }
  }
  const [head = '', tail = ''] = address.split('::')
  const groups = (part: string): number[] =>
    part === '' ? [] : part.split(':').map((group) => Number.parseInt(group, 16))
  const left = groups(head)
  const right = address.includes('::') ? groups(tail) : []
  const all = [...left, ...Array.from({ length: 8 - left.length - right.length }, () => 0), ...right]
  const word = (at: number): number => all[2 * at]! * 65536 + all[2 * at + 1]!
  return { family: 6, words: [word(0), word(1), word(2), word(3)], prefixLength: Number(length ?? 128) }
}

for (const file of readdirSync(folder).filter((name) => name.endsWith('.json'))) {
  test.each(readScenarios(file))(`${file}: $scenario`, (scenario) => {
    const names = new Names()
    const writer = createIndex({ reserve: 'small' })
    expect(writer.apply(changesOf(scenario, names))).toEqual([])
    const reader = openIndex(writer.shared)
    for (const one of scenario.cases) {
      const { key, machineId, ip, country, organization, product } = one.check
      const outcome = decideNow(
        reader,
        {
          organizationId: names.id('organization', organization ?? DEFAULT_ORGANIZATION),
          productId: product === undefined ? null : names.id('product', product),
          licenseKey: utf8.encode(key),
          machineId: machineId === undefined ? null : utf8.encode(machineId),
          address: ip === undefined ? null : parseNetwork(ip),
          country: country ?? null,
        },
        NOW,
      )
      const matched = one.matched ?? (one.decidedBy === undefined ? [] : [one.decidedBy])
      const got = {
        code: outcome.code,
        decidedBy: names.nameOf('rule', outcome.decidedBy),
        matched: outcome.matched.map((id) => names.nameOf('rule', id) ?? 'unknown').toSorted(),
        restricted: outcome.restricted,
        graceEndsInMs: outcome.graceEndsAtMs === 0 ? undefined : outcome.graceEndsAtMs - NOW,
        slot: outcome.slot,
        used: outcome.used,
        max: outcome.max,
      }
      expect(got, one.case).toEqual({
        code: one.code,
        decidedBy: one.decidedBy,
        matched: matched.toSorted(),
        restricted: one.restricted ?? [],
        graceEndsInMs: one.graceEndsInMs,
        slot: one.slot ?? 'none',
        used: one.used ?? outcome.used,
        max: one.max ?? outcome.max,
      })
    }
  })
}
