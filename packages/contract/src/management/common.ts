/**
 * Schemas that the resources of the management API share: ids, times, metadata and lists. Request schemas reject values that
 * Postgres cannot store or would return in another form.
 */

import { z } from 'zod'

import { oneLine, text } from '../text.ts'

export const EXAMPLE_ID = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'

/** Returns the schema of an id in a request. The id is converted to lower case (docs/api.md#m1). */
export function id(description: string) {
  return z.uuid().toLowerCase().meta({ description, example: EXAMPLE_ID })
}

/** Returns the schema of a time in a response: ISO 8601 UTC with milliseconds. */
export function timestamp(description: string) {
  return z.iso.datetime({ precision: 3 }).meta({ description, example: '2026-11-20T09:30:00.000Z' })
}

/** Returns the schema of a time in a request: ISO 8601 with `Z` or an offset, in the years 1970 to 9999. */
export function moment(description: string) {
  return z.iso
    .datetime({ offset: true, abort: true })
    .transform((value) => new Date(value))
    .refine((value) => value.getTime() >= 0 && value.getUTCFullYear() <= 9999, 'must be in the years 1970 to 9999')
    .meta({ description, example: '2030-01-01T00:00:00.000Z' })
}

/** Returns the schema of an id that the vendor's own system assigned. */
export function externalIdOf(resource: string, example: string) {
  return text(200).meta({
    description: `The id of the ${resource} in the vendor's own system. It is unique in the organization.`,
    example,
  })
}

/** The maximum size in bytes of a body with metadata. It allows the longest metadata with every character escaped. */
export const MAX_METADATA_BODY_BYTES = 128 * 1024
const MAX_METADATA_LENGTH = 16_384
const MAX_METADATA_DEPTH = 8

/** Returns whether `jsonb` stores the value unchanged (no NUL, lone surrogate or infinite number), and the nesting is not too deep. */
function isStorable(value: unknown, depth: number): boolean {
  if (depth > MAX_METADATA_DEPTH) return false
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\u0000')
  if (typeof value === 'number') return Number.isFinite(value)
  if (value === null || typeof value !== 'object') return true
  return Object.entries(value).every(([key, member]) => isStorable(key, depth) && isStorable(member, depth + 1))
}

export const metadata = z
  .record(z.string(), z.unknown())
  .refine(
    (value) => isStorable(value, 0) && JSON.stringify(value).length <= MAX_METADATA_LENGTH,
    `must be JSON of at most ${MAX_METADATA_LENGTH} characters, nested at most ${MAX_METADATA_DEPTH} deep, without NUL`,
  )
  .meta({
    description: 'Any JSON object of the vendor. It is returned as given.',
    example: { order: 'A-1001' },
  })

/**
 * An e-mail address without blanks: a local part, an @, and a domain of at least two non-empty labels. Internationalized addresses are
 * allowed. The served `/openapi.json` contains the pattern, so it uses only syntax that all regular expression engines support.
 */
export const email = z
  .string()
  .max(320)
  .regex(/^[^\s@]+@(?:[^\s@.]+\.)+[^\s@.]+$/, 'must be an e-mail address')
  .refine((value) => !/[\p{Cc}\p{Cs}]/u.test(value), 'must be an e-mail address')
  .meta({ description: 'An e-mail address.', example: 'ada@example.com' })

/** The lengths and the positions of dots and hyphens that mail servers accept. Quoted local parts are not accepted. */
const DELIVERABLE =
  /^(?=.{1,254}$)(?=[^@]{1,64}@)[^.@]+(?:\.[^.@]+)*@(?:(?!-)[^.@]{0,62}[^.@-]\.)+(?!-)[^.@]{0,62}[^.@-]$/u

/** An e-mail address to store. Invisible characters are rejected, because they make different addresses look equal. */
export const newEmail = email
  .refine((value) => DELIVERABLE.test(value), 'must be an e-mail address')
  .refine((value) => !/\p{Cf}/u.test(value), 'must not contain invisible characters')

/** A name that is stored as given. It must not be blank. Colleagues could not see a name with unsafe characters as it is stored. */
export const name = text(200)
  .refine((value) => value.trim() !== '', 'must not be blank')
  .refine(
    (value) => oneLine(value) === value,
    'must not contain control characters or characters that change the direction of text',
  )

export const limit = z
  .string()
  .regex(/^[0-9]{1,3}$/, 'must be a whole number from 1 to 100')
  .default('50')
  .transform(Number)
  .refine((value) => value >= 1 && value <= 100, 'must be a whole number from 1 to 100')
  .meta({
    description: 'The maximum number of items to return, 1 to 100.',
    override: ({ jsonSchema }: { jsonSchema: { pattern?: unknown } }) => {
      delete jsonSchema.pattern
      Object.assign(jsonSchema, { type: 'integer', minimum: 1, maximum: 100, default: 50 })
    },
  })

export const cursor = text(200).optional().meta({ description: 'The `nextCursor` of the previous page.' })

/** Returns the schema of a list's query with the given filters. Unknown parameters are validation errors. */
export function listQuery<Filters extends z.ZodRawShape>(filters: Filters) {
  return z.strictObject({ limit, cursor, ...filters })
}

/** Matches a number, `true`, `false` or `null`, as JSON writes them. */
const LITERAL = /^(?:true|false|null|-?(?:0|[1-9][0-9]{0,14})(?:[.][0-9]{1,15})?)$/

/** The query parameter `metadata=name:value`. Its output is the member as JSON texts: `value` as a text, and as another JSON value if it is one. */
export const metadataFilter = text(512)
  .regex(/^[^:]+:/, 'must be the name of a member, a colon and its value')
  .transform((given) => {
    const at = given.indexOf(':')
    const value = given.slice(at + 1)
    const texts = LITERAL.test(value) ? [JSON.stringify(value), value] : [JSON.stringify(value)]
    return texts.map((one) => `{${JSON.stringify(given.slice(0, at))}:${one}}`)
  })
  .optional()
  .meta({
    description:
      'Returns only items whose metadata has this member at its top level, as `name:value`. The value is compared with texts, numbers, `true`, `false` and `null`.',
    example: 'order:A-1001',
  })

/** The query parameter of a list that counts its items on request. */
export const totalRequest = {
  total: z
    .literal('true')
    .optional()
    .meta({ description: 'Adds `total` to the response: the number of items on all pages.', example: 'true' }),
}

/** Returns the query of an export of all items that the filters of a list select. */
export function exportQuery<Filters extends z.ZodRawShape>(filters: Filters) {
  return z.strictObject({
    format: z
      .enum(['csv', 'jsonl'])
      .default('csv')
      .meta({ description: 'The format: CSV, or one JSON object in each line.', example: 'jsonl' }),
    ...filters,
  })
}

export const exportedRows = z
  .string()
  .meta({ description: 'CSV with a heading line, or one JSON object in each line.', example: 'id,email\r\n' })

/** Returns the schema of one page of a list. */
export function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item).meta({ description: 'The items of this page, newest first.' }),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: 'The `cursor` of the next page; null on the last page.', example: null }),
  })
}

/** Returns the schema of one page of a list that counts its items on request. */
export function countedPage<Item extends z.ZodType>(item: Item) {
  return page(item).extend({
    total: z
      .int()
      .optional()
      .meta({ description: 'The number of items on all pages, if it was requested.', example: 203 }),
  })
}

const actorFields = {
  type: z.enum(['OPERATOR', 'MEMBER', 'MANAGEMENT_TOKEN', 'ACCESS_TOKEN', 'API_KEY', 'CUSTOMER', 'SYSTEM']).meta({
    description: 'The type of the caller.',
    example: 'MANAGEMENT_TOKEN',
  }),
  id: z.string().optional().meta({ description: 'The id of the credential, member or customer.', example: EXAMPLE_ID }),
  name: z.string().optional().meta({
    description: 'The name of the credential, or the e-mail address of the member.',
    example: 'deploy script',
  }),
  memberId: z
    .string()
    .optional()
    .meta({ description: 'The member behind a session or an access token.', example: EXAMPLE_ID }),
}

/** The actor that made a change. */
export const actor = z
  .object({
    ...actorFields,
    issuedBy: z
      .object(actorFields)
      .optional()
      .meta({ description: 'The actor that issued the access token or invitation, if different from the member.' }),
  })
  .meta({ id: 'Actor', description: 'The caller that made a change.' })
export type Actor = z.infer<typeof actor>
