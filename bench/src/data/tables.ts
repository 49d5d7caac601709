/** Copies the rows of every table of a generated database. Referenced tables precede the tables that refer to them. */

import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type { Actor } from '@keyward/contract'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'

import {
  apiKey,
  BLACKLISTED_MACHINE,
  customersPerOrganization,
  EXCLUDED_MACHINE,
  licenseFacts,
  licenseKey,
  machineId,
  PRODUCTS_PER_ORGANIZATION,
  type Shape,
} from './population.ts'
import { ruleRow, type RuleRow } from './rules.ts'
import { idDigits, type TableName } from './scatter.ts'

const EXPIRES_AT = '2100-01-01T00:00:00Z'
const CREATED_BY = JSON.stringify({ type: 'SYSTEM' } satisfies Actor)
const CHUNK_LENGTH = 1 << 20

/** The values of a row by column. No text contains a character that COPY escapes. */
type Row = Record<string, string | number | null>

/** Copies all rows of the shape. The caller handles the transaction and disables triggers. */
export async function copyTables(client: pg.ClientBase, shape: Shape): Promise<void> {
  const { organizations, licenses, machinesPerLicense, maxMachines } = shape
  const customers = customersPerOrganization(shape)
  const named = organizations * 2
  const id = (table: TableName, ordinal: number): string => idDigits(shape.seed, table, ordinal)
  const idOrNull = (table: TableName, ordinal: number | null): string | null =>
    ordinal === null ? null : id(table, ordinal)

  await copyRows(client, 'organizations', organizations, (n) => {
    return { id: id('organization', n), name: `Bench ${n}`, plan: 'STANDARD' }
  })
  await copyRows(client, 'credentials', organizations, (n) => {
    const secret = apiKey(shape, n)
    return {
      id: id('credential', n),
      organization_id: id('organization', n),
      kind: 'API_KEY',
      name: 'bench',
      prefix: secret.slice(0, 8),
      secret_hash: `\\\\x${createHash('sha256').update(secret).digest('hex')}`,
    }
  })
  await copyRows(client, 'products', organizations * PRODUCTS_PER_ORGANIZATION, (n) => {
    const organization_id = id('organization', Math.floor(n / PRODUCTS_PER_ORGANIZATION))
    return { id: id('product', n), organization_id, name: `Product ${n}` }
  })
  await copyRows(client, 'customers', organizations * customers, (n) => {
    const organization_id = id('organization', Math.floor(n / customers))
    return { id: id('customer', n), organization_id, email: `customer-${n}@example.com` }
  })
  await copyRows(client, 'licenses', licenses, (n) => {
    const { organization, product, customer } = licenseFacts(shape, n)
    return {
      id: id('license', n),
      organization_id: id('organization', organization),
      product_id: id('product', product),
      customer_id: id('customer', customer),
      key: licenseKey(shape, n),
      policy_type: 'SUBSCRIPTION',
      max_machines: maxMachines,
      expires_at: EXPIRES_AT,
    }
  })
  await copyRows(client, 'license_slots', licenses, (n) => ({ license_id: id('license', n), used: machinesPerLicense }))
  await copyRows(client, 'machines', licenses * machinesPerLicense, (n) => {
    const license = Math.floor(n / machinesPerLicense)
    return {
      id: id('machine', n),
      license_id: id('license', license),
      organization_id: id('organization', licenseFacts(shape, license).organization),
      machine_id: machineId(shape, license, n % machinesPerLicense),
    }
  })
  await copyRows(client, 'access_rules', named + shape.rules, (n) => {
    const { organization, kind, type, value, scope, ...ids } = n < named ? namedRule(n) : ruleRow(shape, n - named)
    return {
      id: id('rule', n),
      organization_id: id('organization', organization),
      kind,
      type,
      value,
      scope,
      product_id: idOrNull('product', ids.product),
      license_id: idOrNull('license', ids.license),
      customer_id: idOrNull('customer', ids.customer),
      created_by: CREATED_BY,
    }
  })
}

/** Copies `count` rows into a table. `row` returns row number n, always with the same columns in the same order. */
async function copyRows(client: pg.ClientBase, table: string, count: number, row: (n: number) => Row): Promise<void> {
  if (count === 0) return
  function* chunks(): Generator<string> {
    let chunk = ''
    for (let n = 0; n < count; n += 1) {
      const values = Object.values(row(n)).map((value) => value ?? '\\N')
      chunk += `${values.join('\t')}\n`
      if (chunk.length < CHUNK_LENGTH) continue
      yield chunk
      chunk = ''
    }
    yield chunk
  }
  const columns = Object.keys(row(0)).join(', ')
  const target = client.query(copyFrom(`copy ${table} (${columns}) from stdin`))
  await pipeline(Readable.from(chunks(), { objectMode: true, highWaterMark: 4 }), target)
}

/** Returns the blacklist (even `n`) or the exclusion (odd `n`) that checks of the kind `blacklisted` or `excluded` match. */
function namedRule(n: number): RuleRow {
  const isBlacklist = n % 2 === 0
  return {
    organization: n >> 1,
    kind: isBlacklist ? 'BLACKLIST' : 'EXCLUSION',
    type: 'HWID',
    value: isBlacklist ? BLACKLISTED_MACHINE : EXCLUDED_MACHINE,
    scope: 'ORGANIZATION',
    product: null,
    license: null,
    customer: null,
  }
}
