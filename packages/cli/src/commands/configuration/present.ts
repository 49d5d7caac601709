/** Reads the resources of the organization that a configuration can name. */

import { type AccessRule, accessRules, type AccessRuleSet, accessRuleSets } from '@keyward/contract'
import { TERM_DEFAULTS } from '@keyward/contract/management/licenses'
import { type Product, products } from '@keyward/contract/management/products'
import { ORDER_DEFAULTS, type Template, templates } from '@keyward/contract/management/templates'
import { type WebhookEndpoint, webhookEndpoints } from '@keyward/contract/management/webhooks'

import type { Api } from '../../api.ts'
import { EXIT, Failure } from '../../failure.ts'
import { readList } from '../lists.ts'
import type { RuleRow } from './file.ts'

export interface Present {
  products: readonly Product[]
  endpoints: readonly WebhookEndpoint[]
  sets: readonly AccessRuleSet[]
}

export async function readPresent(api: Api): Promise<Present> {
  const [all, endpoints, sets] = await Promise.all([
    readList(api, products.listProducts, {}),
    readList(api, webhookEndpoints.listWebhookEndpoints, {}),
    readList(api, accessRuleSets.listAccessRuleSets, {}),
  ])
  return { products: all.items, endpoints: endpoints.items, sets: sets.items }
}

export async function readTemplates(api: Api, product: Product): Promise<Template[]> {
  return (await readList(api, templates.listTemplates, { params: { id: product.id } })).items
}

/** Returns the unexpired rules of a set. Expired rules match nothing, and no request could create them. */
export async function readRules(api: Api, set: string): Promise<AccessRule[]> {
  return (await readList(api, accessRules.listAccessRules, { query: { set, expired: 'false' } })).items
}

/** Returns the item with a name, or undefined. Throws Failure if several items have the name. */
export function named<Item>(items: readonly Item[], what: string, name: string, nameOf: (item: Item) => string) {
  const found = items.filter((item) => nameOf(item) === name)
  if (found.length > 1)
    throw new Failure(EXIT.usage, `${found.length} ${what} have the name ${name}. Rename them first`)
  return found[0]
}

/** Returns the configuration of the organization, without fields that have the default of a new resource. */
export async function exportConfiguration(api: Api) {
  const present = await readPresent(api)
  const productName = (id: string | null) => present.products.find((one) => one.id === id)?.name
  return {
    products: await record(
      present.products,
      'products',
      ({ name }) => name,
      async (one) => ({
        ...filled({ entitlements: one.entitlements, metadata: one.metadata }),
        ...filled({
          templates: await record(
            await readTemplates(api, one),
            `templates of ${one.name}`,
            ({ name }) => name,
            asInFile,
          ),
        }),
      }),
    ),
    webhooks: await record(
      present.endpoints,
      'webhook endpoints',
      ({ url }) => url,
      (one) => ({
        types: one.types,
        ...(one.description !== null && { description: one.description }),
        ...(!one.enabled && { enabled: false }),
      }),
    ),
    sets: await record(
      present.sets,
      'sets',
      ({ name }) => name,
      async ({ name }) =>
        (await readRules(api, name)).map((rule) => rowOf(rule, productName(rule.scopeId))).toReversed(),
    ),
  }
}

function asInFile({ policy: { type, ...terms }, entitlements, metadata, priceIds, orders }: Template) {
  return {
    policy: { type, ...changed(terms, TERM_DEFAULTS) },
    ...filled({ entitlements, metadata }),
    ...(priceIds.length > 0 && { priceIds }),
    ...filled({ orders: changed(orders, ORDER_DEFAULTS) }),
  }
}

function rowOf(rule: AccessRule, product: string | undefined): RuleRow {
  const { kind, mode, type, value, scope, scopeId, note, expiresAt, allowSuspendedOrExpired } = rule
  return {
    kind,
    ...(mode === 'MONITOR' && { mode }),
    type,
    value,
    ...(scope === 'PRODUCT' && product !== undefined ? { product } : scopeId === null ? {} : { scope, scopeId }),
    ...(note !== null && { note }),
    ...(expiresAt !== null && { expiresAt }),
    ...(allowSuspendedOrExpired && { allowSuspendedOrExpired }),
  }
}

/** Returns the items by their names, oldest first. Throws Failure if several have one name. */
async function record<Item, Value>(
  items: readonly Item[],
  what: string,
  nameOf: (item: Item) => string,
  valueOf: (item: Item) => Value | Promise<Value>,
): Promise<Record<string, Value>> {
  const entries: [string, Value][] = []
  for (const item of items.toReversed()) {
    named(items, what, nameOf(item), nameOf)
    entries.push([nameOf(item), await valueOf(item)])
  }
  return Object.fromEntries(entries)
}

/** Returns the members that are not empty objects. */
function filled<Members extends Record<string, object>>(members: Members): Partial<Members> {
  const kept: Partial<Members> = {}
  for (const key in members) if (Object.keys(members[key] ?? {}).length > 0) kept[key] = members[key]
  return kept
}

/** Returns the members that differ from the defaults. */
function changed<Members extends object>(members: Members, defaults: Partial<Members>): Partial<Members> {
  const kept: Partial<Members> = {}
  for (const key in members) if (members[key] !== defaults[key]) kept[key] = members[key]
  return kept
}
