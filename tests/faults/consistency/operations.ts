/**
 * Creates random changes through the management API. Each operation consists of a request, and a function that returns the
 * model after success. If the outcome is unknown because Postgres was unavailable, the state is read from Postgres afterwards.
 */

import { type Random } from '@keyward/testkit'
import { z } from 'zod'

import { OPERATOR_TOKEN } from '../support/children.ts'
import type { ModelLicense, ModelRule, ModelState } from './model.ts'

export const MACHINES = ['m0', 'm1', 'm2', 'm3', 'm4', 'm5', 'm6', 'm7']
export const ADDRESSES = ['10.1.2.3', '10.1.9.9', '10.2.0.1', '2001:db8::7']
export const COUNTRIES = ['DE', 'FR']
const NETWORKS = ['10.1.0.0/16', '10.1.2.3', '10.0.0.0/8', '2001:db8::/32']

export interface Operation {
  name: string
  method: string
  path: string
  token: string
  body: object
  /** Returns the model after success. `response` is the parsed body. */
  apply: (state: ModelState, response: unknown) => ModelState
}

export interface Tenant {
  id: string
  managementToken: string
  apiKey: string
  products: readonly string[]
  customers: string[]
  /** A license that no operation changes. Each of its granted slots must exist at the end. */
  untouched: ModelLicense
}

const Identified = z.object({ id: z.string() })
const Created = z.object({ id: z.string(), key: z.string() })

function withLicense(state: ModelState, license: ModelLicense): ModelState {
  return { ...state, licenses: new Map(state.licenses).set(license.id, license) }
}

type Maker = (tenant: Tenant, state: ModelState, from: Random) => Operation | null

function pickLicense(tenant: Tenant, state: ModelState, from: Random): ModelLicense | null {
  const candidates = [...state.licenses.values()].filter(({ id }) => id !== tenant.untouched.id)
  return candidates.length === 0 ? null : from.pick(candidates)
}

/** Returns a function that creates the operation `action` on a random license that is not revoked. */
function setStatus(action: string, status: string): Maker {
  return (tenant, state, from) => {
    const license = pickLicense(tenant, state, from)
    if (license === null) return null
    const apply = (before: ModelState): ModelState => withLicense(before, { ...license, status })
    return {
      name: action,
      method: 'POST',
      path: `licenses/${license.id}/${action}`,
      token: tenant.managementToken,
      body: {},
      apply,
    }
  }
}

const createLicense: Maker = ({ managementToken: token, products, customers }, state, from) => {
  if (state.licenses.size >= 12) return null
  const [productId, customerId] = [from.pick(products), from.pick(customers)]
  const max = from.chance(0.5) ? null : 1 + from.int(4)
  const body = { productId, customerId, policy: { type: 'PERPETUAL', maxMachines: max } }
  const apply = (before: ModelState, response: unknown): ModelState => {
    const { id, key } = Created.parse(response)
    return withLicense(before, { id, key, productId, customerId, status: 'active', max })
  }
  return { name: 'create license', method: 'POST', path: 'licenses', token, body, apply }
}

const deleteLicense: Maker = (tenant, state, from) => {
  const license = pickLicense(tenant, state, from)
  if (license === null || state.licenses.size < 6) return null
  const apply = (before: ModelState): ModelState => ({
    licenses: new Map([...before.licenses].filter(([id]) => id !== license.id)),
    rules: new Map([...before.rules].filter(([, rule]) => rule.scopeId !== license.id)),
  })
  return {
    name: 'delete license',
    method: 'DELETE',
    path: `licenses/${license.id}`,
    token: tenant.managementToken,
    body: {},
    apply,
  }
}

const setLimit: Maker = (tenant, state, from) => {
  const license = pickLicense(tenant, state, from)
  if (license === null) return null
  const max = from.chance(0.2) ? null : 1 + from.int(5)
  const body = { policy: { maxMachines: max } }
  const apply = (before: ModelState): ModelState => withLicense(before, { ...license, max })
  return {
    name: 'set limit',
    method: 'PATCH',
    path: `licenses/${license.id}`,
    token: tenant.managementToken,
    body,
    apply,
  }
}

const createRule: Maker = (tenant, state, from) => {
  const license = pickLicense(tenant, state, from)
  const scope = from.pick(['LICENSE', 'LICENSE', 'PRODUCT', 'ORGANIZATION'])
  if (license === null) return null
  const scopeId = scope === 'LICENSE' ? license.id : scope === 'PRODUCT' ? from.pick(tenant.products) : null
  const type = from.pick(['IP', 'IP', 'HWID', 'HWID', 'COUNTRY', 'CUSTOMER'])
  const values: Record<string, readonly string[]> = { IP: NETWORKS, HWID: MACHINES, COUNTRY: COUNTRIES }
  const value = from.pick(values[type] ?? tenant.customers)
  const kind = (type === 'IP' || type === 'HWID') && from.chance(0.4) ? 'EXCLUSION' : 'BLACKLIST'
  const allowSuspendedOrExpired = kind === 'EXCLUSION' && from.chance(0.5)
  const rule = { kind, type, value, scope, scopeId, allowSuspendedOrExpired }
  const apply = (before: ModelState, response: unknown): ModelState => {
    const { id } = Identified.parse(response)
    return { ...before, rules: new Map(before.rules).set(id, { id, ...rule }) }
  }
  return { name: 'create rule', method: 'POST', path: 'access-rules', token: tenant.managementToken, body: rule, apply }
}

function changeRule(make: (rule: ModelRule, token: string) => Operation): Maker {
  return (tenant, state, from) =>
    state.rules.size === 0 ? null : make(from.pick([...state.rules.values()]), tenant.managementToken)
}

const deleteRule = changeRule((rule, token) => {
  const apply = (before: ModelState): ModelState => ({
    ...before,
    rules: new Map([...before.rules].filter(([id]) => id !== rule.id)),
  })
  return { name: 'delete rule', method: 'DELETE', path: `access-rules/${rule.id}`, token, body: {}, apply }
})

const allowByRule = changeRule((rule, token) => {
  const changed = { ...rule, allowSuspendedOrExpired: rule.kind === 'EXCLUSION' && !rule.allowSuspendedOrExpired }
  const body = { allowSuspendedOrExpired: changed.allowSuspendedOrExpired }
  const apply = (before: ModelState): ModelState => ({ ...before, rules: new Map(before.rules).set(rule.id, changed) })
  return { name: 'change rule', method: 'PATCH', path: `access-rules/${rule.id}`, token, body, apply }
})

/**
 * Merges a customer into another one. Afterwards, the licenses and rules that referred to the first customer refer to the second.
 * A rule that would then duplicate a rule of the second customer is deleted.
 */
const merge: Maker = (tenant, _state, from) => {
  if (tenant.customers.length < 3) return null
  const [gone = '', into = ''] = from.shuffle(tenant.customers)
  const apply = (before: ModelState): ModelState => {
    tenant.customers.splice(tenant.customers.indexOf(gone), 1)
    const licenses = [...before.licenses].map(([id, one]): [string, ModelLicense] => [
      id,
      one.customerId === gone ? { ...one, customerId: into } : one,
    ])
    const isTwin = (rule: ModelRule): boolean =>
      rule.value === gone &&
      [...before.rules.values()].some(
        (one) => one.value === into && one.scope === rule.scope && one.scopeId === rule.scopeId,
      )
    const rules = [...before.rules]
      .filter(([, rule]) => !isTwin(rule))
      .map(([id, rule]): [string, ModelRule] => [id, rule.value === gone ? { ...rule, value: into } : rule])
    return { licenses: new Map(licenses), rules: new Map(rules) }
  }
  return {
    name: 'merge',
    method: 'POST',
    path: `customers/${gone}/merge`,
    token: tenant.managementToken,
    body: { into },
    apply,
  }
}

/** Sets a random plan. The plan does not affect validation. */
const setPlan: Maker = ({ id }, _state, from) => {
  const body = { plan: from.pick(['FREE', 'LITE', 'STANDARD', 'STANDARD']) }
  return {
    name: 'set plan',
    method: 'PATCH',
    path: `organizations/${id}`,
    token: OPERATOR_TOKEN,
    body,
    apply: (state) => state,
  }
}

const MAKERS: readonly Maker[] = [
  createRule,
  createRule,
  createRule,
  deleteRule,
  allowByRule,
  setStatus('suspend', 'suspended'),
  setStatus('reinstate', 'active'),
  setStatus('reinstate', 'active'),
  setStatus('revoke', 'revoked'),
  createLicense,
  createLicense,
  deleteLicense,
  setLimit,
  setLimit,
  merge,
  setPlan,
]

export function makeOperation(tenant: Tenant, state: ModelState, from: Random): Operation {
  for (;;) {
    const operation = from.pick(MAKERS)(tenant, state, from)
    if (operation !== null) return operation
  }
}
