/**
 * Tests that every field that the contract accepts for a license is stored, returned, audited, and logged for validators if verdicts depend
 * on it. The fields and their values come from the schemas, so a new field without support fails here.
 */

import { createLicense, importedLicenses, license as licenseSchema, page, updateLicense } from '@keyward/contract'
import { activityEntry } from '@keyward/contract/management/activity'
import { auditEntry } from '@keyward/contract/management/audit'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
})
beforeEach(async () => {
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

type Fields = Record<string, unknown>
const fields = z.record(z.string(), z.unknown())

const jsonSchema = z.looseObject({
  type: z.string().optional(),
  format: z.string().optional(),
  enum: z.array(z.string()).optional(),
  minimum: z.number().optional(),
  properties: z.record(z.string(), z.unknown()).optional(),
  anyOf: z.array(z.unknown()).optional(),
})
type JsonSchema = z.output<typeof jsonSchema>

/** Returns the schema without its alternative `null`. */
function withoutNull(node: unknown): JsonSchema {
  const schema = jsonSchema.parse(node)
  const [given, ...others] = (schema.anyOf ?? []).map(withoutNull).filter(({ type }) => type !== 'null')
  return given !== undefined && others.length === 0 ? given : schema
}

/** Returns the fields of an object by path, such as `policy.maxMachines`. An object with named fields is replaced with these fields. */
function leavesOf(node: unknown, path = ''): Map<string, JsonSchema> {
  const schema = withoutNull(node)
  if (schema.properties === undefined) return new Map([[path, schema]])
  const members = Object.entries(schema.properties)
  return new Map(
    members.flatMap(([name, member]) => Array.from(leavesOf(member, path === '' ? name : `${path}.${name}`))),
  )
}

/** Returns a value that no default equals. Each `variant` yields another value. */
function valueOf(path: string, { type, format, minimum = 0, enum: names }: JsonSchema, variant: number): unknown {
  if (names) return names[variant]
  if (format === 'date-time') return `204${variant}-02-03T04:05:06.007Z`
  if (type === 'integer') return minimum + variant
  if (type === 'boolean') return variant === 1
  if (type === 'string') return `text ${variant} of ${path}`
  if (type === 'object') return { a: variant }
  throw new Error(`Add a value for the type of ${path}: ${type}`)
}

const leavesOfInput = (schema: z.ZodType) => leavesOf(z.toJSONSchema(schema, { io: 'input' }))
const CREATED = leavesOfInput(createLicense)
const UPDATED = leavesOfInput(updateLicense)
/** A license has at most one of these fields. */
const ALTERNATIVES = new Set(['policy.expiresAt', 'policy.durationDays'])
/** Validators do not receive changes of these fields, because no verdict depends on them. */
const UNLOGGED = new Set([
  'metadata',
  'externalId',
  'templateId',
  'policy.type',
  'policy.maxReleases',
  'policy.fileDays',
])

const at = (value: unknown, path: string): unknown =>
  path.split('.').reduce<unknown>((node, name) => fields.parse(node)[name], value)

/** Returns an object that has each value at its path. */
function bodyOf(values: readonly (readonly [string, unknown])[]): Fields {
  const body: Fields = {}
  for (const [path, value] of values) {
    const [name = '', inner] = path.split('.')
    body[name] = inner === undefined ? value : { ...fields.optional().parse(body[name]), [inner]: value }
  }
  return body
}

async function valuesOf(leaves: Map<string, JsonSchema>, variant: number): Promise<[string, unknown][]> {
  const productId = await vendor.product()
  const references = new Map([
    ['productId', productId],
    ['templateId', (await vendor.template({}, productId)).id],
    ['customerId', await vendor.customer()],
  ])
  return [...leaves].map(([path, schema]) => [path, references.get(path) ?? valueOf(path, schema, variant)])
}

/** Returns the fields of the license in three responses: of the license itself, of the list and of the audit log. */
async function shown(id: string, key: unknown): Promise<unknown[]> {
  const read = expectBody(await vendor.call('GET', `licenses/${id}`), 200, licenseSchema)
  const list = await vendor.call('GET', `licenses?key=${encodeURIComponent(String(key))}`)
  const log = await vendor.call('GET', `audit-log?resourceId=${id}&limit=1`)
  const changes = expectBody(log, 200, page(auditEntry)).data[0]?.changes
  return [read, expectBody(list, 200, page(licenseSchema)).data[0], changes]
}

async function countLogged(id: string): Promise<number> {
  const { rows } = await harness.database.pool.query<{ count: number }>(
    `select count(*)::integer as count from change_log where entity = 'L' and id = $1`,
    [id],
  )
  return rows[0]?.count ?? 0
}

test.each([...ALTERNATIVES])(
  'every field of a license with %s is stored, returned, audited and logged',
  async (used) => {
    const isUsed = ([path]: readonly [string, unknown]) => path === used || !ALTERNATIVES.has(path)
    const created = (await valuesOf(CREATED, 1)).filter(isUsed)
    const body = bodyOf(created)
    const { id, key } = await vendor.license(body)
    for (const representation of await shown(id, key))
      for (const [path, value] of created) expect([path, at(representation, path)]).toEqual([path, value])

    const imported = { body: { licenses: [{ ...body, key: `${key} again`, externalId: 'again' }] } }
    const { licenses } = expectBody(await vendor.call('POST', 'licenses/import', imported), 200, importedLicenses)
    const copy = expectBody(await vendor.call('GET', `licenses/${licenses[0]?.id}`), 200, licenseSchema)
    for (const [path, value] of created.filter(([name]) => name !== 'key' && name !== 'externalId'))
      expect([path, at(copy, path)]).toEqual([path, value])

    const updated = (await valuesOf(UPDATED, 2)).filter(isUsed)
    for (const [path, value] of updated) {
      const before = await countLogged(id)
      const response = await vendor.call('PATCH', `licenses/${id}`, { body: bodyOf([[path, value]]) })
      for (const representation of [expectBody(response, 200, licenseSchema), ...(await shown(id, key))])
        expect([path, at(representation, path)]).toEqual([path, value])
      expect([path, (await countLogged(id)) > before]).toEqual([path, !UNLOGGED.has(path)])
    }
    const activity = expectBody(await vendor.call('GET', `licenses/${id}/activity`), 200, page(activityEntry)).data
    const types = ['LICENSE_CREATED', ...updated.map(() => 'LICENSE_CHANGED')]
    expect(activity.map(({ type }) => type).toReversed()).toEqual(types)
  },
)
