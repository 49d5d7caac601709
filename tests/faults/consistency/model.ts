/**
 * Models an organization and the verdicts of its checks. The model uses plain maps and one pass over the rules, and shares no
 * code with the engine. Responses of validators and the content of Postgres are compared with the model.
 */

import { BlockList, isIPv6 } from 'node:net'

import { z } from 'zod'

export interface ModelLicense {
  id: string
  key: string
  productId: string
  customerId: string
  status: string
  max: number | null
}

export interface ModelRule {
  id: string
  kind: string
  type: string
  value: string
  scope: string
  scopeId: string | null
  allowSuspendedOrExpired: boolean
}

/** The state of the organization. A state is immutable, and each operation returns the next state. */
export interface ModelState {
  licenses: ReadonlyMap<string, ModelLicense>
  rules: ReadonlyMap<string, ModelRule>
}

export interface ModelCheck {
  license: string
  fingerprint: string
  ip: string
  country: string
}

/** The verdict that the model computes. `SLOT` means that the slot of the machine decides. */
export type Judgement = 'VALID' | 'NOT_FOUND' | 'BLACKLISTED' | 'REVOKED' | 'SUSPENDED' | 'SLOT'

const SCOPES = ['LICENSE', 'PRODUCT', 'ORGANIZATION']

function matches(rule: ModelRule, license: ModelLicense, check: ModelCheck): boolean {
  const scopes: Record<string, string | null> = { LICENSE: license.id, PRODUCT: license.productId, ORGANIZATION: null }
  if (rule.scopeId !== scopes[rule.scope]) return false
  switch (rule.type) {
    case 'HWID':
      return rule.value === check.fingerprint
    case 'COUNTRY':
      return rule.value === check.country
    case 'CUSTOMER':
      return rule.value === license.customerId
    default:
      return covers(rule.value, check.ip)
  }
}

function covers(network: string, ip: string): boolean {
  const family = isIPv6(ip) ? 'ipv6' : 'ipv4'
  const [address = '', length] = network.split('/')
  if (isIPv6(address) !== isIPv6(ip)) return false
  const list = new BlockList()
  list.addSubnet(address, Number(length ?? (family === 'ipv4' ? 32 : 128)), family)
  return list.check(ip, family)
}

export function judge(state: ModelState, check: ModelCheck): Judgement {
  const license = [...state.licenses.values()].find(({ key }) => key === check.license)
  if (!license) return 'NOT_FOUND'
  const matching = [...state.rules.values()].filter((rule) => matches(rule, license, check))
  const scope = SCOPES.find((candidate) => matching.some((rule) => rule.scope === candidate))
  const deciding = matching.filter((rule) => rule.scope === scope)
  const exclusions = deciding.filter((rule) => rule.kind === 'EXCLUSION')
  if (deciding.length > 0 && exclusions.length === 0) return 'BLACKLISTED'
  if (license.status === 'revoked') return 'REVOKED'
  const isForgiven = exclusions.some((rule) => rule.allowSuspendedOrExpired)
  if (license.status === 'suspended' && !isForgiven) return 'SUSPENDED'
  return exclusions.length > 0 || license.max === null ? 'VALID' : 'SLOT'
}

/**
 * Returns whether the state allows the code of a response. Postgres decides on machines that need a slot, and may have a
 * later state of the license (`later`) than the validator.
 */
export function allows(state: ModelState, later: readonly ModelState[], check: ModelCheck, code: string): boolean {
  const judgement = judge(state, check)
  if (judgement !== 'SLOT') return judgement === code
  if (code === 'VALID' || code === 'TOO_MANY_MACHINES') return true
  const keyed = (one: ModelState): ModelLicense | undefined =>
    [...one.licenses.values()].find(({ key }) => key === check.license)
  return later.some((one) => code === (keyed(one)?.status.toUpperCase() ?? 'NOT_FOUND'))
}

interface Queryable {
  query: (text: string, values: unknown[]) => Promise<{ rows: unknown[] }>
}

const Licenses = z.array(
  z.object({
    id: z.string(),
    key: z.string(),
    productId: z.string(),
    customerId: z.string(),
    status: z.string(),
    max: z.number().nullable(),
  }),
)
const Rules = z.array(
  z.object({
    id: z.string(),
    kind: z.string(),
    type: z.string(),
    value: z.string(),
    scope: z.string(),
    scopeId: z.string().nullable(),
    allowSuspendedOrExpired: z.boolean(),
  }),
)

/** Reads the state from Postgres. */
export async function readState(pool: Queryable, organizationId: string): Promise<ModelState> {
  const licenses = await pool.query(
    `select id, key, product_id as "productId", customer_id as "customerId", status, max_machines as max
     from licenses where organization_id = $1 order by id`,
    [organizationId],
  )
  const rules = await pool.query(
    `select id, kind, type, convert_from(value, 'UTF8') as value, scope, scope_id as "scopeId",
       allow_suspended_or_expired as "allowSuspendedOrExpired"
     from access_rules where organization_id = $1 order by id`,
    [organizationId],
  )
  return {
    licenses: new Map(Licenses.parse(licenses.rows).map((one) => [one.id, one])),
    rules: new Map(Rules.parse(rules.rows).map((one) => [one.id, one])),
  }
}

/** Returns the sorted content without ids, because a merge may keep either of two equal rules. */
export function contentOf({ licenses, rules }: ModelState): string[] {
  const ruleText = [...rules.values()].map(({ id: _id, ...rule }) => JSON.stringify(rule, Object.keys(rule).toSorted()))
  const licenseText = [...licenses.values()].map((one) => JSON.stringify(one, Object.keys(one).toSorted()))
  return [...licenseText, ...ruleText].toSorted()
}
