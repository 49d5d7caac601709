/** Compares a configuration with the organization, and returns the changes that bring the organization to its state. */

import { isDeepStrictEqual } from 'node:util'

import { canonicalRuleValue } from '@keyward/address'
import { accessRuleSets, type createAccessRule } from '@keyward/contract'
import { type Product, products } from '@keyward/contract/management/products'
import { templates } from '@keyward/contract/management/templates'
import { webhookEndpoints } from '@keyward/contract/management/webhooks'
import type { z } from 'zod'

import type { Api, CallOptions } from '../../api.ts'
import { EXIT, Failure } from '../../failure.ts'
import { validateRow } from '../../import/validate-row.ts'
import type { Configuration, RuleRow } from './file.ts'
import { named, type Present, readPresent, readRules, readTemplates } from './present.ts'

type Rule = z.input<typeof createAccessRule>

export interface Change {
  action: 'create' | 'change'
  /** The resource in words, such as `product Studio`. */
  resource: string
  details: readonly string[]
  /** Makes the change. Returns text that the person must see, such as a secret. */
  make: () => Promise<string | undefined>
}

export interface PlanOptions {
  /** Whether an empty list may delete all rules of a set. */
  allowEmpty: boolean
  /** The options of calls whose changes validators apply. */
  wait: CallOptions
}

/** The id of a product that the plan creates first. */
const NOT_YET = '00000000-0000-4000-8000-000000000000'
const MAX_PROBLEMS = 20

/** Returns the changes in the order in which they must be made. Resources that the configuration does not name stay. */
export async function planChanges(api: Api, wanted: Configuration, options: PlanOptions): Promise<Change[]> {
  const present = await readPresent(api)
  const ids = new Map<string, string>()
  return [
    ...(await planProducts(api, wanted, present, ids, options)),
    ...planEndpoints(api, wanted, present),
    ...(await planSets(api, wanted, present, ids, options)),
  ]
}

async function planProducts(
  api: Api,
  wanted: Configuration,
  present: Present,
  ids: Map<string, string>,
  { wait }: PlanOptions,
): Promise<Change[]> {
  const changes: Change[] = []
  for (const [name, { templates: wantedTemplates, ...fields }] of Object.entries(wanted.products)) {
    const product = named(present.products, 'products', name, (one) => one.name)
    ids.set(name, product?.id ?? NOT_YET)
    const body = { name, ...fields }
    const resource = `product ${name}`
    if (product === undefined)
      changes.push(
        creation(resource, async () => {
          ids.set(name, (await api.call(products.createProduct, { body })).data.id)
          return undefined
        }),
      )
    else
      changes.push(
        ...change(resource, fields, product, async (version) => {
          await api.call(products.updateProduct, { params: { id: product.id }, body: fields }, { ...wait, version })
        }),
      )
    changes.push(...(await planTemplates(api, wantedTemplates, name, product, ids)))
  }
  for (const { id, name } of present.products) if (!ids.has(name)) ids.set(name, id)
  return changes
}

async function planTemplates(
  api: Api,
  wanted: Configuration['products'][string]['templates'],
  productName: string,
  product: Product | undefined,
  ids: ReadonlyMap<string, string>,
): Promise<Change[]> {
  if (Object.keys(wanted).length === 0) return []
  const present = product === undefined ? [] : await readTemplates(api, product)
  return Object.entries(wanted).flatMap(([name, fields]) => {
    const template = named(present, `templates of ${productName}`, name, (one) => one.name)
    const resource = `template ${name} of ${productName}`
    if (template === undefined)
      return creation(resource, async () => {
        const params = { id: ids.get(productName) ?? NOT_YET }
        await api.call(templates.createTemplate, { params, body: { name, ...fields } })
        return undefined
      })
    const { id } = template
    return change(resource, fields, template, async (version) => {
      await api.call(templates.updateTemplate, { params: { id }, body: fields }, { version })
    })
  })
}

function planEndpoints(api: Api, wanted: Configuration, present: Present): Change[] {
  return Object.entries(wanted.webhooks).flatMap(([url, fields]) => {
    const endpoint = named(present.endpoints, 'webhook endpoints', url, (one) => one.url)
    const resource = `webhook endpoint ${url}`
    if (endpoint === undefined)
      return creation(resource, async () => {
        const { data } = await api.call(webhookEndpoints.createWebhookEndpoint, { body: { url, ...fields } })
        return `The secret of ${url} is ${data.secret}`
      })
    const { id } = endpoint
    return change(resource, fields, endpoint, async (version) => {
      await api.call(webhookEndpoints.updateWebhookEndpoint, { params: { id }, body: fields }, { version })
    })
  })
}

async function planSets(
  api: Api,
  wanted: Configuration,
  present: Present,
  ids: ReadonlyMap<string, string>,
  { allowEmpty, wait }: PlanOptions,
): Promise<Change[]> {
  const changes: Change[] = []
  for (const [name, rows] of Object.entries(wanted.sets)) {
    const set = present.sets.find((one) => one.name === name)
    const before = set === undefined ? [] : await readRules(api, name)
    const inForce = new Set(before.map(spelling))
    const listed = new Set(rulesOf(name, rows, ids).map(spelling))
    const added = [...listed].filter((one) => !inForce.has(one)).length
    const removed = [...inForce].filter((one) => !listed.has(one)).length
    if (added + removed === 0) continue
    if (listed.size === 0 && !allowEmpty)
      throw new Failure(
        EXIT.usage,
        `The list of the set ${name} is empty, so all ${before.length} rules of the set would be deleted. Nothing was sent. To delete them, use --allow-empty`,
      )
    changes.push({
      action: set === undefined ? 'create' : 'change',
      resource: `set ${name}`,
      details: [`${added} rules added, ${removed} removed, ${listed.size - added} kept`],
      make: async () => {
        const body = {
          rules: rulesOf(name, rows, ids),
          ifMatch: set?.version ?? null,
          ...(allowEmpty && { allowEmpty }),
        }
        const { data } = await api.call(accessRuleSets.replaceAccessRuleSet, { params: { set: name }, body }, wait)
        return data.skipped === 0
          ? undefined
          : `Other rows of the set ${name} cover ${data.skipped} of its rows, which you can remove: ${data.skippedRows.map(({ pointer }) => pointer).join(', ')}`
      },
    })
  }
  return changes
}

/** Returns the rules of rows. Throws Failure with the rows that the service would reject. */
function rulesOf(set: string, rows: readonly RuleRow[], ids: ReadonlyMap<string, string>): Rule[] {
  const rules: Rule[] = []
  const details: string[] = []
  for (const [i, { product, ...fields }] of rows.entries()) {
    const where = `sets.${set}.${i}`
    const scopeId = product === undefined ? undefined : ids.get(product)
    if (product !== undefined && (scopeId === undefined || 'scope' in fields || 'scopeId' in fields)) {
      details.push(
        `${where}: product: ${scopeId === undefined ? `${product} does not exist` : 'excludes scope and scopeId'}`,
      )
      continue
    }
    const scope = scopeId === undefined ? {} : { scope: 'PRODUCT', scopeId }
    const row = validateRow(
      { where, fields: { ...fields, ...scope } },
      { kind: 'BLACKLIST', type: 'IP', scope: 'ORGANIZATION' },
    )
    if ('rule' in row) rules.push(row.rule)
    else details.push(row.problem)
  }
  if (details.length === 0) return rules
  throw new Failure(EXIT.usage, `${details.length} rules are invalid. Nothing was sent`, {
    details: details.slice(0, MAX_PROBLEMS),
  })
}

/** Returns a text that two rules share if they do the same. */
function spelling(rule: Rule): string {
  const { kind, mode = 'ENFORCE', type, value, scope, scopeId = null, note = null, expiresAt = null } = rule
  const canonical = canonicalRuleValue(type, value)
  return JSON.stringify([
    kind,
    mode,
    type,
    canonical,
    scope,
    scopeId,
    note,
    expiresAt,
    rule.allowSuspendedOrExpired ?? false,
  ])
}

const creation = (resource: string, make: Change['make']): Change => ({ action: 'create', resource, details: [], make })

/** Returns the change of a resource whose fields differ from the wanted ones. Returns no change if they are equal. */
function change(
  resource: string,
  wanted: Readonly<Record<string, unknown>>,
  present: { updatedAt: string },
  make: (version: string) => Promise<void>,
): Change[] {
  const before = flat(pick(present, Object.keys(wanted)))
  const after = flat(wanted)
  const names = [...new Set([...before.keys(), ...after.keys()])]
  const details = names
    .filter((name) => !isDeepStrictEqual(before.get(name), after.get(name)))
    .map((name) => `${name}: ${shown(before.get(name))} → ${shown(after.get(name))}`)
  if (details.length === 0) return []
  const changing = async (): Promise<undefined> => {
    await make(present.updatedAt)
  }
  return [{ action: 'change', resource, details, make: changing }]
}

function pick(item: object, names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(item).filter(([name]) => names.includes(name)))
}

/** Returns the fields, with the members of objects as fields of their own. The order of a list has no meaning. */
function flat(fields: Readonly<Record<string, unknown>>): Map<string, unknown> {
  const all = new Map<string, unknown>()
  for (const [name, value] of Object.entries(fields))
    if (Array.isArray(value)) all.set(name, value.map(String).toSorted())
    else if (typeof value === 'object' && value !== null)
      for (const [member, one] of Object.entries(value)) all.set(`${name}.${member}`, one)
    else all.set(name, value)
  return all
}

const shown = (value: unknown): string => (value === undefined ? 'absent' : JSON.stringify(value))
