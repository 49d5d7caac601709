/** Writes the rows of every table of a generated database. Referenced tables precede the tables that refer to them. */

import { createHash } from 'node:crypto'

import type pg from 'pg'

import { copyRows, RowWriter } from './copy.ts'
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

const EXPIRES_AT_MS = Date.UTC(2100, 0, 1)
const CREATED_BY = { type: 'bench' }

/** Copies all rows of the shape. The caller handles the transaction and disables triggers. */
export async function copyTables(client: pg.ClientBase, shape: Shape): Promise<void> {
  const writer = new RowWriter(shape.seed)
  await copyTenants(client, shape, writer)
  await copyLicenses(client, shape, writer)
  await copyMachines(client, shape, writer)
  await copyRules(client, shape, writer)
}

async function copyTenants(client: pg.ClientBase, shape: Shape, writer: RowWriter): Promise<void> {
  const { organizations } = shape
  await copyRows(client, 'organizations', ['id', 'name', 'plan'], organizations, writer, (n) => {
    writer.id('organization', n)
    writer.text(`Bench ${n}`)
    writer.text('STANDARD')
  })
  const credential = ['id', 'organization_id', 'kind', 'name', 'prefix', 'secret_hash']
  await copyRows(client, 'credentials', credential, organizations, writer, (n) => {
    const secret = apiKey(shape, n)
    writer.id('credential', n)
    writer.id('organization', n)
    writer.text('API_KEY')
    writer.text('bench')
    writer.text(secret.slice(0, 8))
    writer.bytes(createHash('sha256').update(secret).digest())
  })
  const products = organizations * PRODUCTS_PER_ORGANIZATION
  await copyRows(client, 'products', ['id', 'organization_id', 'name'], products, writer, (n) => {
    writer.id('product', n)
    writer.id('organization', Math.floor(n / PRODUCTS_PER_ORGANIZATION))
    writer.text(`Product ${n}`)
  })
  const customers = customersPerOrganization(shape)
  await copyRows(client, 'customers', ['id', 'organization_id', 'email'], organizations * customers, writer, (n) => {
    writer.id('customer', n)
    writer.id('organization', Math.floor(n / customers))
    writer.text(`customer-${n}@example.com`)
  })
}

async function copyLicenses(client: pg.ClientBase, shape: Shape, writer: RowWriter): Promise<void> {
  const columns = [
    'id',
    'organization_id',
    'product_id',
    'customer_id',
    'key',
    'policy_type',
    'max_machines',
    'expires_at',
  ]
  await copyRows(client, 'licenses', columns, shape.licenses, writer, (n) => {
    const facts = licenseFacts(shape, n)
    writer.id('license', n)
    writer.id('organization', facts.organization)
    writer.id('product', facts.product)
    writer.id('customer', facts.customer)
    writer.text(licenseKey(shape, n))
    writer.text('SUBSCRIPTION')
    writer.integer(shape.maxMachines)
    writer.timestamp(EXPIRES_AT_MS)
  })
  await copyRows(client, 'license_slots', ['license_id', 'used'], shape.licenses, writer, (n) => {
    writer.id('license', n)
    writer.integer(shape.machinesPerLicense)
  })
}

async function copyMachines(client: pg.ClientBase, shape: Shape, writer: RowWriter): Promise<void> {
  const { licenses, machinesPerLicense } = shape
  const columns = ['id', 'license_id', 'machine_id']
  await copyRows(client, 'machines', columns, licenses * machinesPerLicense, writer, (n) => {
    const license = Math.floor(n / machinesPerLicense)
    writer.id('machine', n)
    writer.id('license', license)
    writer.text(machineId(shape, license, n % machinesPerLicense))
  })
}

async function copyRules(client: pg.ClientBase, shape: Shape, writer: RowWriter): Promise<void> {
  const columns = [
    'id',
    'organization_id',
    'kind',
    'type',
    'value',
    'scope',
    'product_id',
    'license_id',
    'customer_id',
    'created_by',
  ]
  const named = shape.organizations * 2
  await copyRows(client, 'access_rules', columns, named + shape.rules, writer, (n) => {
    const rule = n < named ? namedRule(n) : ruleRow(shape, n - named)
    writer.id('rule', n)
    writer.id('organization', rule.organization)
    writer.text(rule.kind)
    writer.text(rule.type)
    writer.text(rule.value)
    writer.text(rule.scope)
    writer.id('product', rule.product)
    writer.id('license', rule.license)
    writer.id('customer', rule.customer)
    writer.json(CREATED_BY)
  })
}

/** Returns the blacklist (even `n`) or the exclusion (odd `n`) that checks of the kind `blacklisted` or `excluded` match. */
function namedRule(n: number): RuleRow {
  const base = {
    organization: n >> 1,
    type: 'HWID',
    scope: 'ORGANIZATION',
    product: null,
    license: null,
    customer: null,
  } as const
  return n % 2 === 0
    ? { ...base, kind: 'BLACKLIST', value: BLACKLISTED_MACHINE }
    : { ...base, kind: 'EXCLUSION', value: EXCLUDED_MACHINE }
}
