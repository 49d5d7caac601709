import { BlockList } from 'node:net'

import { parseSecret } from '@keyward/database'
import { describe, expect, test } from 'vitest'

import { apiKey, hasAddressRules, licenseFacts, licenseKey, machineId, type Shape } from '../src/data/population.ts'
import { clientAddress, ruleRow, type RuleRow } from '../src/data/rules.ts'

const shape: Shape = {
  seed: 7,
  licenses: 20_000,
  rules: 20_000,
  organizations: 4,
  machinesPerLicense: 3,
  maxMachines: 5,
}
const rules = Array.from({ length: shape.rules }, (_, n) => ruleRow(shape, n))

function duplicateKey(rule: RuleRow): string {
  return [rule.organization, rule.kind, rule.type, rule.value, rule.scope, rule.product, rule.license].join(' ')
}

describe('a generated population', () => {
  test('equal seeds generate equal license keys and rules', () => {
    expect(licenseKey(shape, 17)).toBe(licenseKey({ ...shape }, 17))
    expect(licenseKey(shape, 17)).not.toBe(licenseKey({ ...shape, seed: 8 }, 17))
    expect(ruleRow(shape, 19_999)).toEqual(rules[19_999])
  })

  test('license keys and machine ids are unique, and license keys have the form of generated ones', () => {
    const keys = Array.from({ length: shape.licenses }, (_, n) => licenseKey(shape, n))
    expect(new Set(keys).size).toBe(shape.licenses)
    expect(keys.every((key) => /^([2-9A-HJ-NP-Z]{4}-){3}[2-9A-HJ-NP-Z]{4}$/.test(key))).toBe(true)
    const machines = Array.from({ length: 30_000 }, (_, n) => machineId(shape, Math.floor(n / 3), n % 3))
    expect(new Set(machines).size).toBe(30_000)
  })

  test('API keys have a valid checksum', () => {
    expect(parseSecret(apiKey(shape, 0))).toEqual({ kind: 'API_KEY' })
    expect(apiKey(shape, 0)).not.toBe(apiKey(shape, 1))
  })

  test('all licenses of a customer belong to one organization', () => {
    const owners = new Map<number, number>()
    for (let license = 0; license < shape.licenses; license += 1) {
      const { organization, customer } = licenseFacts(shape, license)
      expect(owners.get(customer) ?? organization).toBe(organization)
      owners.set(customer, organization)
    }
  })
})

describe('generated rules', () => {
  test('rules have every type and scope, and no duplicates', () => {
    expect(new Set(rules.map(({ type }) => type))).toEqual(new Set(['IP', 'HWID', 'COUNTRY', 'CUSTOMER']))
    expect(new Set(rules.map(({ scope }) => scope))).toEqual(new Set(['ORGANIZATION', 'PRODUCT', 'LICENSE']))
    expect(new Set(rules.map(duplicateKey)).size).toBe(rules.length)
  })

  test('even-numbered organizations have no address or country rules', () => {
    const located = rules.filter(({ type }) => type === 'IP' || type === 'COUNTRY')
    expect(located.every(({ organization }) => hasAddressRules(organization))).toBe(true)
  })

  test('the license in the scope of a rule belongs to the organization of the rule', () => {
    const scoped = rules.filter((rule) => rule.license !== null)
    expect(scoped.every((rule) => licenseFacts(shape, rule.license ?? 0).organization === rule.organization)).toBe(true)
  })

  test('customer rules match only customers that are marked as blocked', () => {
    const blocked = new Set<number>()
    for (let license = 0; license < shape.licenses; license += 1) {
      const facts = licenseFacts(shape, license)
      if (facts.blocked) blocked.add(facts.customer)
    }
    const named = rules.filter(({ type }) => type === 'CUSTOMER')
    expect(named.length).toBeGreaterThan(100)
    expect(named.every(({ customer }) => customer !== null && blocked.has(customer))).toBe(true)
  })

  test('address rules match no client address', () => {
    const list = new BlockList()
    for (const { type, value } of rules.slice(0, 4000)) {
      const [address = '', length] = value.split('/')
      if (type === 'IP' && !value.includes(':')) list.addSubnet(address, Number(length ?? 32), 'ipv4')
    }
    for (let n = 0; n < 200; n += 1) expect(list.check(clientAddress(shape.seed, n), 'ipv4')).toBe(false)
    const first = rules.find(({ value }) => /^\d+\.\d+\.\d+\.\d+$/.test(value))
    expect(list.check(first?.value ?? '', 'ipv4')).toBe(true)
  })
})
