/**
 * Schemas that the resources of the management API share: ids, times, metadata and lists. Request schemas reject what Postgres
 * cannot store and what would not be returned as it was sent.
 */

import { z } from 'zod'

import { text } from '../text.ts'

export const EXAMPLE_ID = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'

/** An id in a request, converted to lower case (docs/api.md#m1). */
export function id(description: string) {
  return z.uuid().toLowerCase().meta({ description, example: EXAMPLE_ID })
}

/** A time in a response: ISO 8601 UTC with milliseconds. */
export function timestamp(description: string) {
  return z.iso.datetime({ precision: 3 }).meta({ description, example: '2026-11-20T09:30:00.000Z' })
}

/** A time in a request: ISO 8601 with `Z` or an offset, between the years 1970 and 9999. */
export function moment(description: string) {
  return z.iso
    .datetime({ offset: true, abort: true })
    .transform((value) => new Date(value))
    .refine(
      (value) => value.getTime() >= 0 && value.getUTCFullYear() <= 9999,
      'must lie between the years 1970 and 9999',
    )
    .meta({ description, example: '2030-01-01T00:00:00.000Z' })
}

const MAX_METADATA_LENGTH = 16_384
const MAX_METADATA_DEPTH = 8

/** Whether `jsonb` stores the value unchanged: no NUL, no lone surrogate, no infinite number, limited nesting. */
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
    description: 'Any data of the vendor; returned as given.',
    example: { order: 'A-1001' },
  })

/**
 * Internationalized addresses are allowed: two parts around an @, no blanks, a domain of non-empty labels. The pattern is part of the
 * OpenAPI document, so it has only what every language's regular expressions have.
 */
export const email = z
  .string()
  .max(320)
  .regex(/^[^\s@]+@(?:[^\s@.]+\.)+[^\s@.]+$/, 'must be an e-mail address')
  .refine((value) => !/[\p{Cc}\p{Cs}]/u.test(value), 'must be an e-mail address')
  .meta({ description: 'An e-mail address.', example: 'ada@example.com' })

/** An address to store. Invisible characters could make two different addresses look equal. */
export const newEmail = email.refine((value) => !/\p{Cf}/u.test(value), 'must not contain invisible characters')

/** Stored as given; a blank name is a validation error. */
export const name = text(200).refine((value) => value.trim() !== '', 'must not be blank')

export const limit = z
  .string()
  .regex(/^[0-9]{1,3}$/, 'must be a whole number from 1 to 100')
  .default('50')
  .transform(Number)
  .refine((value) => value >= 1 && value <= 100, 'must be a whole number from 1 to 100')
  .meta({
    description: 'How many to return, 1 to 100.',
    override: ({ jsonSchema }: { jsonSchema: { pattern?: unknown } }) => {
      delete jsonSchema.pattern
      Object.assign(jsonSchema, { type: 'integer', minimum: 1, maximum: 100, default: 50 })
    },
  })

export const cursor = text(200).optional().meta({ description: 'The `nextCursor` of the page before.' })

/** The query of a list with its own filters. Unknown parameters are validation errors, as unknown fields are. */
export function listQuery<Filters extends z.ZodRawShape>(filters: Filters) {
  return z.strictObject({ limit, cursor, ...filters })
}

/** One page, newest first. */
export function page<Item extends z.ZodType>(item: Item) {
  return z.object({
    data: z.array(item).meta({ description: 'The items of this page, newest first.' }),
    nextCursor: z
      .string()
      .nullable()
      .meta({ description: 'Pass it as `cursor` for the next page; null: this was the last.', example: null }),
  })
}

/** The parameters in the path of one resource. */
export const idParams = z.strictObject({ id: id('The id of the resource.') })

const actorFields = {
  type: z.enum(['OPERATOR', 'MEMBER', 'MANAGEMENT_TOKEN', 'ACCESS_TOKEN', 'API_KEY', 'SYSTEM']).meta({
    description: 'What kind of caller it was.',
    example: 'MANAGEMENT_TOKEN',
  }),
  id: z.string().optional().meta({ description: 'The id of the credential or member.', example: EXAMPLE_ID }),
  name: z.string().optional().meta({
    description: 'The name of the credential, or the e-mail address of the member.',
    example: 'deploy script',
  }),
  memberId: z
    .string()
    .optional()
    .meta({ description: 'The member behind a session or an access token.', example: EXAMPLE_ID }),
}

/** The caller that made a change. */
export const actor = z
  .object({
    ...actorFields,
    issuedBy: z
      .object(actorFields)
      .optional()
      .meta({ description: 'The actor that issued the access token or the invitation, if it was not the member.' }),
  })
  .meta({ id: 'Actor', description: 'Who did it.' })
export type Actor = z.infer<typeof actor>
