/**
 * Random worlds and the changes that lead to them. Keys, machines, networks and scopes are drawn from small pools, so
 * that they coincide often. Rows refer only to rows that exist, and deletions cascade as they do in the database.
 */

import {
  type AccessRuleRecord,
  type Change,
  type CredentialRecord,
  type CustomerRecord,
  type Id,
  type LicenseRecord,
  type Network,
  NOT_STARTED,
  type OrganizationRecord,
  type ProductRecord,
  type RuleKind,
  type RuleMatch,
} from '../../src/index.ts'
import { hex, type NaiveCheck, type World } from './naive.ts'
import { random, type Random } from './random.ts'

export const NOW = 1_800_000_000_000
const DAY_MS = 86_400_000

const KEYS = ['A', 'B', 'AB', 'KEY-0001', 'KEY-0002', 'KEY-0003', 'a', 'key with spaces', 'x'.repeat(128)]
const MACHINES = ['m', 'm0', 'm1', 'M1', 'ma', 'a-rather-long-machine-id-of-many-bytes', 'ü', 'z'.repeat(512)]
const COUNTRIES = ['DE', 'FR', 'XK']
const EXPIRIES = [Infinity, Infinity, Infinity, NOW + 1, NOW, NOW - 1, NOW + 100_000]
/** Also contains expiries whose grace periods of one and two days end about now. */
const LICENSE_EXPIRIES = [
  ...EXPIRIES,
  NOW - DAY_MS + 1,
  NOW - DAY_MS,
  NOW - DAY_MS - 1,
  NOW - 2 * DAY_MS,
  NOW - 99 * DAY_MS,
]

/** Lengths around those at which a value needs another block. */
const VALUE_LENGTHS = [2, 43, 44, 45, 103, 104, 105, 164, 165, 1000]

/** The fields of a license that `changeField` can change. */
const LICENSE_FIELDS = [
  'productId',
  'customerId',
  'key',
  'status',
  'expiresAtMs',
  'maxMachines',
  'leaseSeconds',
  'graceDays',
  'entitlements',
] as const

const utf8 = new TextEncoder()

export class History implements World {
  organizations: OrganizationRecord[] = []
  products: ProductRecord[] = []
  customers: CustomerRecord[] = []
  credentials: CredentialRecord[] = []
  licenses: LicenseRecord[] = []
  rules: AccessRuleRecord[] = []
  machines: { licenseId: Id; machineId: Uint8Array }[] = []
  readonly random: Random

  /** Whether most rules are restrictions that apply to several licenses. */
  readonly #isRestrictive: boolean

  constructor(seed: number, isRestrictive = false) {
    this.random = random(seed)
    this.#isRestrictive = isRestrictive
  }

  /** Applies a random transaction to this world and returns its changes. */
  step(): Change[] {
    const { random: r } = this
    const dice = r.int(100)
    if (this.organizations.length === 0 || dice < 2) return this.#addOrganization()
    if (this.products.length === 0 || dice < 6) return this.#putProduct()
    if (this.customers.length === 0 || dice < 10) return this.#addCustomer()
    if (dice < 13) return this.#putCredential()
    if (this.licenses.length === 0 || dice < 24) return this.#putLicense()
    if (dice < 54) return this.#putRule()
    if (dice < 60) return this.changeField()
    if (dice < 80) return this.#changeMachine()
    if (dice < 90) return this.rules.length === 0 ? [] : this.#removeRules((rule) => rule === r.pick(this.rules))
    if (dice < 95) return this.#removeLicense(r.pick(this.licenses))
    if (dice < 97) return this.#removeOwner('customer')
    if (dice < 98) return this.#removeOwner('product')
    return this.#removeCredential()
  }

  /** Changes a single field of a license or rule, if there is one, and returns the changes. */
  changeField(): Change[] {
    const { random: r } = this
    if (this.rules.length > 0 && r.chance(0.4)) return this.#changeRule(r.pick(this.rules))
    return this.licenses.length === 0 ? [] : this.#changeLicense(r.pick(this.licenses))
  }

  /** Returns the whole world as additions, in random order. */
  snapshot(): Change[] {
    const changes: Change[] = [
      ...this.organizations.map((row): Change => ({ entity: 'organization', id: row.id, row })),
      ...this.products.map((row): Change => ({ entity: 'product', id: row.id, row })),
      ...this.customers.map((row): Change => ({ entity: 'customer', id: row.id, row })),
      ...this.credentials.map((row): Change => ({ entity: 'credential', id: row.id, row })),
      ...this.licenses.map((row): Change => ({ entity: 'license', id: row.id, row })),
      ...this.rules.map((row): Change => ({ entity: 'rule', id: row.id, row })),
      ...this.machines.map((one): Change => ({
        entity: 'machine',
        ...one,
        held: true,
        used: null,
      })),
    ]
    return this.random.shuffle(changes)
  }

  /** Returns a copy of this world that continues with other random transactions. */
  copy(): History {
    const copy = new History(this.random.int(2 ** 31), this.#isRestrictive)
    copy.organizations = [...this.organizations]
    copy.products = [...this.products]
    copy.customers = [...this.customers]
    copy.credentials = [...this.credentials]
    copy.licenses = [...this.licenses]
    copy.rules = [...this.rules]
    copy.machines = [...this.machines]
    return copy
  }

  randomCheck(r: Random = this.random): NaiveCheck {
    const organizationId = r.pick(this.organizations).id
    const products = this.products.filter((one) => one.organizationId === organizationId)
    return {
      organizationId,
      productId: products.length === 0 || r.chance(0.8) ? null : r.pick(products).id,
      licenseKey: this.licenses.length > 0 && r.chance(0.9) ? r.pick(this.licenses).key : utf8.encode(r.pick(KEYS)),
      machineId: r.chance(0.2) ? null : utf8.encode(r.pick(MACHINES)),
      address: r.chance(0.2) ? null : randomNetwork(r, true),
      country: r.chance(0.3) ? null : r.pick([...COUNTRIES, 'US']),
    }
  }

  #addOrganization(): Change[] {
    const row = { id: this.random.bytes(16) }
    this.organizations.push(row)
    return [{ entity: 'organization', id: row.id, row }]
  }

  #putProduct(): Change[] {
    const { random: r } = this
    const known = r.chance(0.4) ? this.products[r.int(this.products.length || 1)] : undefined
    const row: ProductRecord = {
      id: known?.id ?? r.bytes(16),
      organizationId: known?.organizationId ?? r.pick(this.organizations).id,
      entitlements: randomValue(r),
    }
    put(this.products, row)
    return [{ entity: 'product', id: row.id, row }]
  }

  #addCustomer(): Change[] {
    const row = { id: this.random.bytes(16), organizationId: this.random.pick(this.organizations).id }
    this.customers.push(row)
    return [{ entity: 'customer', id: row.id, row }]
  }

  #putCredential(): Change[] {
    const { random: r } = this
    const known = r.chance(0.5) ? this.credentials[r.int(this.credentials.length || 1)] : undefined
    const organizationId = known?.organizationId ?? r.pick(this.organizations).id
    const products = this.products.filter((one) => one.organizationId === organizationId)
    const row: CredentialRecord = {
      id: known?.id ?? r.bytes(16),
      organizationId,
      productId: products.length === 0 || r.chance(0.4) ? null : r.pick(products).id,
      secretHash: known?.secretHash ?? r.bytes(32),
      expiresAtMs: r.pick(EXPIRIES),
    }
    put(this.credentials, row)
    return [{ entity: 'credential', id: row.id, row }]
  }

  #putLicense(): Change[] {
    const product = this.random.pick(this.products)
    const isOwn = ({ organizationId }: { organizationId: Id }): boolean => organizationId === product.organizationId
    if (!this.customers.some(isOwn)) return []
    return this.#storeLicense(
      this.#drawLicense(product, this.random.chance(0.5) ? this.licenses.find(isOwn) : undefined),
    )
  }

  /** Changes a single field of a license. */
  #changeLicense(license: LicenseRecord): Change[] {
    const products = this.products.filter((one) => one.organizationId === license.organizationId)
    const drawn = this.#drawLicense(this.random.pick(products), license)
    const field = this.random.pick(LICENSE_FIELDS)
    return this.#storeLicense({ ...license, [field]: drawn[field] })
  }

  #drawLicense(product: ProductRecord, known: LicenseRecord | undefined): LicenseRecord {
    const { random: r } = this
    return {
      id: known?.id ?? r.bytes(16),
      organizationId: product.organizationId,
      productId: product.id,
      customerId: r.pick(this.customers.filter((one) => one.organizationId === product.organizationId)).id,
      key: utf8.encode(r.pick(KEYS)),
      status: r.pick(['active', 'active', 'active', 'suspended', 'revoked']),
      expiresAtMs: r.chance(0.1) ? NOT_STARTED : r.pick(LICENSE_EXPIRIES),
      maxMachines: r.chance(0.3) ? null : r.int(5),
      leaseSeconds: r.chance(0.7) ? null : 60 + r.int(3),
      graceDays: r.pick([null, null, 1, 2]),
      used: known?.used ?? 0,
      entitlements: randomValue(r),
    }
  }

  /** Stores a license, unless another license of its organization has the same key. */
  #storeLicense(row: LicenseRecord): Change[] {
    const hasItsKey = (one: LicenseRecord): boolean =>
      one.organizationId === row.organizationId && hex(one.key) === hex(row.key)
    if (this.licenses.some((one) => one.id !== row.id && hasItsKey(one))) return []
    put(this.licenses, row)
    return [{ entity: 'license', id: row.id, row }]
  }

  #putRule(): Change[] {
    const license = this.random.pick(this.licenses)
    const isOwn = (one: AccessRuleRecord): boolean => one.organizationId === license.organizationId
    return this.#storeRule(this.#drawRule(license, this.random.chance(0.2) ? this.rules.find(isOwn) : undefined))
  }

  /** Changes only one property of a rule: the mode, expiry, scope, kind or value. */
  #changeRule(rule: AccessRuleRecord): Change[] {
    const { random: r } = this
    const licenses = this.licenses.filter((one) => one.organizationId === rule.organizationId)
    if (licenses.length === 0) return []
    const license = r.pick(licenses)
    const { mode, expiresAtMs, scope, scopeId, type, kind, allowSuspendedOrExpired } = this.#drawRule(license, rule)
    const match = this.#randomMatch(license)
    if (match.type === rule.type && r.chance(0.5)) return this.#storeRule({ ...rule, ...match })
    const fields = [{ mode }, { expiresAtMs }, { scope, scopeId }]
    // The type of a rule limits its kinds.
    const changed = r.pick(type === rule.type ? [...fields, { kind, allowSuspendedOrExpired }] : fields)
    return this.#storeRule({ ...rule, ...changed })
  }

  #drawRule(license: LicenseRecord, known: AccessRuleRecord | undefined): AccessRuleRecord {
    const { random: r } = this
    const restricts = this.#isRestrictive && r.chance(0.8)
    const scopes = ['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const
    const scope = r.pick(restricts ? scopes.slice(1) : scopes)
    const scopeId = { LICENSE: license.id, PRODUCT: license.productId, ORGANIZATION: null }[scope]
    const match = restricts ? this.#randomRestriction() : this.#randomMatch(license)
    const kind = restricts ? 'RESTRICTION' : this.#randomKind(match.type)
    return {
      id: known?.id ?? r.bytes(16),
      organizationId: license.organizationId,
      kind,
      mode: r.chance(0.1) ? 'MONITOR' : 'ENFORCE',
      scope,
      scopeId,
      expiresAtMs: r.pick(EXPIRIES),
      allowSuspendedOrExpired: kind === 'EXCLUSION' && r.chance(0.4),
      ...match,
    }
  }

  /** Stores a rule. Several rules may have the same value, and an expired one of them may be replaced, with its deletion in any order. */
  #storeRule(row: AccessRuleRecord): Change[] {
    const replaces = this.random.chance(0.5)
    put(this.rules, row)
    const isReplaced = (one: AccessRuleRecord): boolean =>
      replaces && one.id !== row.id && one.expiresAtMs < NOW && identity(one) === identity(row)
    return this.random.shuffle<Change>([{ entity: 'rule', id: row.id, row }, ...this.#removeRules(isReplaced)])
  }

  #randomKind(type: RuleMatch['type']): RuleKind {
    const { random: r } = this
    if (type === 'CUSTOMER') return 'BLACKLIST'
    if (type === 'COUNTRY') return r.chance(0.3) ? 'RESTRICTION' : 'BLACKLIST'
    return r.pick(['BLACKLIST', 'BLACKLIST', 'EXCLUSION', 'EXCLUSION', 'EXCLUSION', 'RESTRICTION'])
  }

  #randomRestriction(): RuleMatch {
    const { random: r } = this
    if (r.chance(0.1)) return { type: 'COUNTRY', country: r.pick(COUNTRIES) }
    return { type: 'HWID', machineId: utf8.encode(r.pick(MACHINES.slice(0, 5))) }
  }

  #randomMatch(license: LicenseRecord): RuleMatch {
    const { random: r } = this
    const type = r.pick(['IP', 'IP', 'IP', 'HWID', 'HWID', 'COUNTRY', 'CUSTOMER'] as const)
    if (type === 'IP') return { type, network: randomNetwork(r, false) }
    if (type === 'HWID') return { type, machineId: utf8.encode(r.pick(MACHINES)) }
    if (type === 'COUNTRY') return { type, country: r.pick(COUNTRIES) }
    const customers = this.customers.filter((one) => one.organizationId === license.organizationId)
    return { type, customerId: r.chance(0.5) ? license.customerId : r.pick(customers).id }
  }

  #changeMachine(): Change[] {
    const license = this.random.pick(this.licenses)
    const machineId = utf8.encode(this.random.pick(MACHINES))
    const index = this.machines.findIndex(
      (one) => one.licenseId === license.id && hex(one.machineId) === hex(machineId),
    )
    if (index < 0) this.machines.push({ licenseId: license.id, machineId })
    else this.machines.splice(index, 1)
    const used = this.machines.filter((one) => one.licenseId === license.id).length
    put(this.licenses, { ...license, used })
    return [machineChange(license, machineId, index < 0, used)]
  }

  #removeRules(which: (rule: AccessRuleRecord) => boolean): Change[] {
    const gone = this.rules.filter(which)
    this.rules = this.rules.filter((rule) => !gone.includes(rule))
    return gone.map(({ id }) => ({ entity: 'rule', id, row: null }))
  }

  #removeLicense(license: LicenseRecord): Change[] {
    const machines = this.machines.filter((one) => one.licenseId === license.id)
    this.machines = this.machines.filter((one) => one.licenseId !== license.id)
    this.licenses = this.licenses.filter((one) => one.id !== license.id)
    return this.random.shuffle<Change>([
      { entity: 'license', id: license.id, row: null },
      ...this.#removeRules((rule) => rule.scopeId === license.id),
      ...machines.map(({ machineId }) => machineChange(license, machineId, false, 0)),
    ])
  }

  #removeOwner(entity: 'product' | 'customer'): Change[] {
    const rows = entity === 'product' ? this.products : this.customers
    const used = (id: Id): boolean => this.licenses.some((one) => one.productId === id || one.customerId === id)
    const index = rows.findIndex((row) => !used(row.id))
    const row = rows[index]
    if (row === undefined) return []
    rows.splice(index, 1)
    const credentials = this.credentials.filter((one) => one.productId === row.id)
    this.credentials = this.credentials.filter((one) => one.productId !== row.id)
    const rules = this.#removeRules(
      (rule) => rule.scopeId === row.id || (rule.type === 'CUSTOMER' && rule.customerId === row.id),
    )
    return this.random.shuffle<Change>([
      { entity, id: row.id, row: null },
      ...credentials.map(({ id }): Change => ({ entity: 'credential', id, row: null })),
      ...rules,
    ])
  }

  #removeCredential(): Change[] {
    const row = this.credentials.shift()
    return row === undefined ? [] : [{ entity: 'credential', id: row.id, row: null }]
  }
}

/** Returns a byte string from a small pool, or null. */
function randomValue(r: Random): Uint8Array | null {
  return r.chance(0.5) ? null : new Uint8Array(r.pick(VALUE_LENGTHS)).fill(r.int(3))
}

/** Returns a random network with few distinct bits, so that networks nest. With `whole`, returns an address. */
export function randomNetwork(r: Random, whole: boolean): Network {
  const family = r.chance(0.5) ? 4 : 6
  const bits = family === 4 ? 32 : 128
  const prefixLength = whole ? bits : r.pick([0, bits, r.int(bits + 1), r.int(bits + 1), 8, 12, 13, 14, 15, 16, 24])
  const word = (at: number): number => {
    const value = r.pick([0, 0x0a000000, 0x0a010203, 0x0a800000, 0xffffffff, 0xfffffffe])
    const kept = Math.min(Math.max(prefixLength - 32 * at, 0), 32)
    return kept === 0 ? 0 : (value & (-1 << (32 - kept))) >>> 0
  }
  return family === 4
    ? { family, words: [word(0)], prefixLength }
    : { family, words: [word(0), word(1), word(2), word(3)], prefixLength }
}

function identity(rule: AccessRuleRecord): string {
  const scope = `${hex(rule.organizationId)} ${rule.scopeId === null ? '' : hex(rule.scopeId)}`
  switch (rule.type) {
    case 'IP':
      return `${scope} ${rule.kind} ip ${rule.network.words.join(':')}/${rule.network.prefixLength}`
    case 'HWID':
      return `${scope} ${rule.kind} hwid ${hex(rule.machineId)}`
    case 'COUNTRY':
      return `${scope} ${rule.kind} country ${rule.country}`
    case 'CUSTOMER':
      return `${scope} ${rule.kind} customer ${hex(rule.customerId)}`
    default:
      return rule satisfies never
  }
}

function machineChange(license: LicenseRecord, machineId: Uint8Array, held: boolean, used: number): Change {
  return { entity: 'machine', licenseId: license.id, machineId, held, used }
}

function put<T extends { id: Id }>(rows: T[], row: T): void {
  const index = rows.findIndex((one) => one.id === row.id)
  if (index < 0) rows.push(row)
  else rows[index] = row
}
