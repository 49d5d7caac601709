/**
 * Defines the rows of a simulated database, and random transactions on them. An update replaces the object of a row. Therefore
 * states can share rows, and a changed row is another object.
 */

import type { Random } from '@keyward/testkit'

export interface License {
  readonly organization: number
  readonly product: number
  readonly customer: number
  readonly status: 'active' | 'suspended' | 'revoked'
  readonly max: number | null
}

export interface Rule {
  readonly organization: number
  readonly kind: 'BLACKLIST' | 'EXCLUSION'
  readonly type: 'IP' | 'HWID' | 'COUNTRY' | 'CUSTOMER'
  /** The value to match. For `CUSTOMER` it is the number of the customer. */
  readonly value: string
  readonly scope: 'LICENSE' | 'PRODUCT' | 'ORGANIZATION'
  /** The number of the license or product. It is null for an organization. */
  readonly scopeId: number | null
  readonly allowSuspendedOrExpired: boolean
}

interface Owned {
  readonly organization: number
}

export interface Machine {
  readonly license: number
  readonly machine: string
}

interface Tables {
  organization: Owned
  product: Owned
  customer: Owned
  credential: Owned & { readonly revoked: boolean }
  license: License
  rule: Rule
  machine: Machine
}

export type TableName = keyof Tables

/** The key of a row: its number, or for machines the result of `machineName`. */
type KeyOf<Name> = Name extends 'machine' ? string : number
export type State = { readonly [Name in TableName]: ReadonlyMap<KeyOf<Name>, Tables[Name]> }
export type Draft = { readonly [Name in TableName]: Map<KeyOf<Name>, Tables[Name]> }

/** The tables, with referenced tables before those that refer to them. */
export const TABLES = ['organization', 'product', 'customer', 'credential', 'rule', 'license', 'machine'] as const

export const MACHINES = ['m1', 'm2', 'm3']
export const ADDRESSES = ['10.1.2.3', '10.2.0.1']
export const COUNTRIES = ['DE', 'FR']
const NETWORKS = ['10.1.0.0/16', '10.1.2.3', '10.0.0.0/8']
export const ORGANIZATIONS = [1, 2]
/** The greatest number of a license key. The first number is 1. */
export const MAX_LICENSES = 7
/** The last digit of a license's number is the number of its key. The first licenses have one digit. */
const DIGIT = 10

/** Returns the number of the key of a license. Licenses that are created one after the other can have the same key. */
export function keyNumberOf(license: number): number {
  return license % DIGIT
}

/** Returns the number and the row of the license with this key, or undefined. */
export function licenseOf(state: State, key: number): [number, License] | undefined {
  for (const entry of state.license) if (keyNumberOf(entry[0]) === key) return entry
  return undefined
}

/** Returns the organization of the licenses with this key. */
export function organizationOfKey(key: number): number {
  return key === 3 || key === 4 || key === 6 ? 2 : 1
}
const STATUSES = ['active', 'suspended', 'revoked'] as const

export function machineName(license: number, machine: string): string {
  return `${license}/${machine}`
}

export function draftOf(state: State): Draft {
  return {
    organization: new Map(state.organization),
    product: new Map(state.product),
    customer: new Map(state.customer),
    credential: new Map(state.credential),
    license: new Map(state.license),
    rule: new Map(state.rule),
    machine: new Map(state.machine),
  }
}

export function usedOf(state: State, license: number): number {
  let used = 0
  for (const row of state.machine.values()) if (row.license === license) used++
  return used
}

/** Returns two organizations with two products, three customers, an API key and two licenses each. */
export function firstState(): State {
  const draft = draftOf(EMPTY)
  for (const organization of ORGANIZATIONS) {
    draft.organization.set(organization, { organization })
    draft.credential.set(organization, { organization, revoked: false })
    for (const n of [10, 11]) draft.product.set(n * organization, { organization })
    for (const n of [100, 101, 102]) draft.customer.set(n * organization, { organization })
  }
  for (const [number, max] of [
    [1, 2],
    [2, null],
    [3, 1],
    [4, null],
  ] as const) {
    const organization = number <= 2 ? 1 : 2
    const [product, customer] = [(10 + (number % 2)) * organization, 100 * organization]
    draft.license.set(number, { organization, product, customer, status: 'active', max })
  }
  return draft
}

const EMPTY: State = {
  organization: new Map(),
  product: new Map(),
  customer: new Map(),
  credential: new Map(),
  license: new Map(),
  rule: new Map(),
  machine: new Map(),
}

/** Changes the draft. Returns a description of the change, or null when the state does not allow it. */
export type Operation = (draft: Draft, random: Random) => string | null

function pickLicense(draft: Draft, random: Random): [number, License] | null {
  const all = [...draft.license]
  return all.length === 0 ? null : random.pick(all)
}

/** Adds a rule, unless a duplicate exists. */
function addRule(draft: Draft, rule: Rule, random: Random): string | null {
  const identity = ({ kind, type, value, scope, scopeId, organization }: Rule): string =>
    [organization, kind, type, value, scope, scopeId].join()
  for (const other of draft.rule.values()) if (identity(other) === identity(rule)) return null
  // The numbers of rules are rarely used again, and never by another organization.
  const number = 2 * (1 + random.int(100_000)) + (rule.organization % 2)
  draft.rule.set(number, rule)
  const where = rule.scope === 'ORGANIZATION' ? `organization ${rule.organization}` : `${rule.scope} ${rule.scopeId}`
  const allowing = rule.allowSuspendedOrExpired ? ' that allows suspended' : ''
  return `adds rule ${number}: ${rule.kind}${allowing} of ${rule.type} ${rule.value} in ${where.toLowerCase()}`
}

function randomRule(draft: Draft, random: Random, kind: Rule['kind'], license: number): Rule {
  const { organization, product, customer } = draft.license.get(license)!
  const scope = random.pick(['LICENSE', 'PRODUCT', 'ORGANIZATION'] as const)
  const type = random.pick(
    kind === 'EXCLUSION' ? (['IP', 'HWID'] as const) : (['IP', 'HWID', 'COUNTRY', 'CUSTOMER'] as const),
  )
  const values = { IP: NETWORKS, HWID: MACHINES, COUNTRY: COUNTRIES, CUSTOMER: [String(customer)] }
  const allowSuspendedOrExpired = kind === 'EXCLUSION' && random.chance(0.5)
  const scopeId = { LICENSE: license, PRODUCT: product, ORGANIZATION: null }[scope]
  return { organization, kind, type, value: random.pick(values[type]), scope, scopeId, allowSuspendedOrExpired }
}

const add =
  (kind: Rule['kind']): Operation =>
  (draft, random) => {
    const found = pickLicense(draft, random)
    return found && addRule(draft, randomRule(draft, random, kind, found[0]), random)
  }

const removeRule: Operation = (draft, random) => {
  if (draft.rule.size === 0) return null
  const number = random.pick([...draft.rule.keys()])
  draft.rule.delete(number)
  return `removes rule ${number}`
}

const setStatus =
  (status: License['status']): Operation =>
  (draft, random) => {
    const found = pickLicense(draft, random)
    if (found === null || found[1].status === status) return null
    draft.license.set(found[0], { ...found[1], status })
    return `makes license ${found[0]} ${status}`
  }

const setLimit: Operation = (draft, random) => {
  const found = pickLicense(draft, random)
  if (found === null) return null
  const max = random.pick([null, 1, 2, 3])
  draft.license.set(found[0], { ...found[1], max })
  return `limits license ${found[0]} to ${max ?? 'any number of'} machines`
}

const createLicense: Operation = (draft, random) => {
  let key = 1
  while (licenseOf(draft, key) !== undefined) key++
  if (key > MAX_LICENSES) return null
  // As in Postgres, the id of a deleted license is never used again, although its key can be.
  const number = key + DIGIT * (1 + random.int(100_000_000))
  const organization = organizationOfKey(key)
  const customer = random.pick([...draft.customer].filter(([, row]) => row.organization === organization))[0]
  const product = random.pick([10, 11]) * organization
  const [status, max] = [random.pick(STATUSES), random.pick([null, 1, 2])]
  draft.license.set(number, { organization, product, customer, status, max })
  return `creates license ${number} of organization ${organization}, ${status}`
}

const deleteLicense: Operation = (draft, random) => {
  const found = pickLicense(draft, random)
  if (found === null) return null
  const [number] = found
  draft.license.delete(number)
  for (const [name, row] of draft.machine) if (row.license === number) draft.machine.delete(name)
  for (const [rule, row] of draft.rule) if (row.scope === 'LICENSE' && row.scopeId === number) draft.rule.delete(rule)
  return `deletes license ${number}`
}

const merge: Operation = (draft, random) => {
  const organization = random.pick(ORGANIZATIONS)
  const customers = [...draft.customer].filter(([, row]) => row.organization === organization).map(([number]) => number)
  const [gone, into] = random.shuffle(customers)
  if (gone === undefined || into === undefined || customers.length < 3) return null
  for (const [number, row] of draft.rule) {
    if (row.type !== 'CUSTOMER' || row.value !== String(gone)) continue
    draft.rule.delete(number)
    const moved = { ...row, value: String(into) }
    const isThere = [...draft.rule.values()].some(
      (one) =>
        one.type === 'CUSTOMER' && one.value === moved.value && one.scope === row.scope && one.scopeId === row.scopeId,
    )
    if (!isThere) draft.rule.set(number, moved)
  }
  for (const [number, row] of draft.license)
    if (row.customer === gone) draft.license.set(number, { ...row, customer: into })
  draft.customer.delete(gone)
  return `merges customer ${gone} into ${into}`
}

const setCredential: Operation = (draft, random) => {
  const [number, row] = random.pick([...draft.credential])
  draft.credential.set(number, { ...row, revoked: !row.revoked })
  return `${row.revoked ? 'restores' : 'revokes'} the API key of organization ${number}`
}

const takeMachine: Operation = (draft, random) => {
  const found = pickLicense(draft, random)
  if (found === null || (found[1].max !== null && usedOf(draft, found[0]) >= found[1].max)) return null
  const machine = random.pick(MACHINES)
  const name = machineName(found[0], machine)
  if (draft.machine.has(name)) return null
  draft.machine.set(name, { license: found[0], machine })
  return `claims a slot of license ${found[0]} for ${machine} through another validator`
}

const releaseMachine: Operation = (draft, random) => {
  if (draft.machine.size === 0) return null
  const name = random.pick([...draft.machine.keys()])
  draft.machine.delete(name)
  return `releases ${name} through another validator`
}

/**
 * Reinstates a license and blocks it by a rule in one transaction. The states before and after both reject the checks that the
 * rule matches.
 */
const reinstateAndBlock: Operation = (draft, random) => {
  const suspended = [...draft.license].filter(([, row]) => row.status !== 'active')
  if (suspended.length === 0) return null
  const [number, row] = random.pick(suspended)
  draft.license.set(number, { ...row, status: 'active' })
  return blockAnywhere(draft, number, random) ? `reinstates license ${number} and blocks it` : null
}

/** Suspends a license and removes its blacklists in one transaction. */
const suspendAndUnblock: Operation = (draft, random) => {
  const found = pickLicense(draft, random)
  if (found === null) return null
  for (const [number, { scope, scopeId, kind }] of draft.rule)
    if (kind === 'BLACKLIST' && scope === 'LICENSE' && scopeId === found[0]) draft.rule.delete(number)
  draft.license.set(found[0], { ...found[1], status: 'suspended' })
  return `suspends license ${found[0]} and removes its blacklist`
}

/** Replaces an exclusion with a blacklist of the same value, or a blacklist with an exclusion, in one transaction. */
const turnRule: Operation = (draft, random) => {
  const turnable = [...draft.rule].filter(([, row]) => row.type === 'IP' || row.type === 'HWID')
  if (turnable.length === 0) return null
  const [number, row] = random.pick(turnable)
  draft.rule.delete(number)
  const kind = row.kind === 'BLACKLIST' ? 'EXCLUSION' : 'BLACKLIST'
  const added = addRule(draft, { ...row, kind, allowSuspendedOrExpired: false }, random)
  return added && `removes rule ${number} and ${added}`
}

function blockAnywhere(draft: Draft, license: number, random: Random): boolean {
  const { organization } = draft.license.get(license)!
  const [type, values] = random.pick([
    ['IP', '10.0.0.0/8'],
    ['HWID', random.pick(MACHINES)],
  ] as const)
  const rule = { organization, type, value: values, scope: 'LICENSE', scopeId: license } as const
  return addRule(draft, { ...rule, kind: 'BLACKLIST', allowSuspendedOrExpired: false }, random) !== null
}

/** Suspends or reinstates every license of an organization. */
const setAll: Operation = (draft, random) => {
  const organization = random.pick(ORGANIZATIONS)
  const status = random.pick(['active', 'suspended'] as const)
  for (const [number, row] of draft.license)
    if (row.organization === organization) draft.license.set(number, { ...row, status })
  return `makes every license of organization ${organization} ${status}`
}

export const OPERATIONS = {
  blacklist: add('BLACKLIST'),
  exclude: add('EXCLUSION'),
  'remove rule': removeRule,
  suspend: setStatus('suspended'),
  reinstate: setStatus('active'),
  revoke: setStatus('revoked'),
  'set limit': setLimit,
  'create license': createLicense,
  'delete license': deleteLicense,
  merge,
  'set credential': setCredential,
  'take machine': takeMachine,
  'release machine': releaseMachine,
  'reinstate and block': reinstateAndBlock,
  'suspend and unblock': suspendAndUnblock,
  'turn rule': turnRule,
  'set all': setAll,
} as const satisfies Record<string, Operation>

export type OperationName = keyof typeof OPERATIONS

export const OPERATION_NAMES = [
  'blacklist',
  'exclude',
  'remove rule',
  'suspend',
  'reinstate',
  'revoke',
  'set limit',
  'create license',
  'delete license',
  'merge',
  'set credential',
  'take machine',
  'release machine',
  'reinstate and block',
  'suspend and unblock',
  'turn rule',
  'set all',
] as const satisfies readonly OperationName[]
