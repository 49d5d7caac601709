/**
 * The file of `keyward apply` and `keyward export`: products with their templates, webhook endpoints, and sets of rules, each under its
 * name. An absent field has the default of a new resource.
 */

import { readFile } from 'node:fs/promises'

import { MAX_SET_RULES, ruleSetName } from '@keyward/contract'
import { name } from '@keyward/contract/management/common'
import { createProduct } from '@keyward/contract/management/products'
import { createTemplate, ORDER_DEFAULTS } from '@keyward/contract/management/templates'
import { createWebhookEndpoint } from '@keyward/contract/management/webhooks'
import { oneLine } from '@keyward/contract/text'
import { Document, parse, visit } from 'yaml'
import { z } from 'zod'

import { EXIT, Failure } from '../../failure.ts'

const MAX_PROBLEMS = 20

const template = createTemplate
  .omit({ name: true })
  .transform(({ entitlements = {}, metadata = {}, priceIds = [], orders = ORDER_DEFAULTS, policy }) => ({
    policy,
    entitlements,
    metadata,
    priceIds,
    orders,
  }))
const product = createProduct
  .omit({ name: true })
  .extend({ templates: z.record(name, template).default({}) })
  .transform(({ entitlements = {}, metadata = {}, templates }) => ({ entitlements, metadata, templates }))
const endpoint = createWebhookEndpoint
  .omit({ url: true })
  .transform(({ types, description = null, enabled = true }) => ({ types, description, enabled }))
/** A rule with the fields of the API. `product` is the name of a product, and stands for `scope` and `scopeId`. */
const rule = z.looseObject({ product: name.optional() })
const url = createWebhookEndpoint.shape.url

const configuration = z.strictObject({
  products: z.record(name, product).default({}),
  webhooks: z.record(url, endpoint).default({}),
  sets: z.record(ruleSetName, z.array(rule).max(MAX_SET_RULES)).default({}),
})
export type Configuration = z.output<typeof configuration>
export type RuleRow = z.output<typeof rule>

/** Reads a file, which is YAML or JSON. Throws Failure with the places of all errors. */
export async function readConfiguration(path: string): Promise<Configuration> {
  const text = await readFile(path, 'utf8').catch(() => {
    throw new Failure(EXIT.usage, `The file ${path} cannot be read`)
  })
  const parsed = configuration.safeParse(parseYaml(path, text))
  if (parsed.success) return parsed.data
  const details = parsed.error.issues
    .slice(0, MAX_PROBLEMS)
    .map(({ path: at, message }) => `${at.join('.')}: ${message}`)
  throw new Failure(EXIT.usage, `${path} is not a configuration. Nothing was sent`, { details })
}

function parseYaml(path: string, text: string): unknown {
  try {
    const value: unknown = parse(text)
    return value ?? {}
  } catch (error) {
    // Besides errors of syntax, the library rejects aliases that would expand to a huge value.
    throw new Failure(EXIT.usage, `${path} is not YAML: ${error instanceof Error ? error.message : String(error)}`)
  }
}

/** Returns the text of a file. Values with characters that a terminal interprets are quoted, so that their escapes have a meaning. */
export function writeConfiguration(given: z.input<typeof configuration>): string {
  const document = new Document(given)
  visit(document, {
    Scalar: (_, node) => {
      if (typeof node.value === 'string' && oneLine(node.value) !== node.value) node.type = 'QUOTE_DOUBLE'
    },
  })
  return document.toString({ lineWidth: 0 })
}
