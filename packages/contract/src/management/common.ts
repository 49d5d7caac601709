/**
 * What the resources of the management API share: ids, times, free data and lists.
 * Request schemas refuse what Postgres could not hold or what would not come back as it went in.
 */
import { z } from 'zod'

import { text } from '../text.ts'

export const exampleId = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'

/** An id in a request, brought to lower case. */
export function id(description: string) {
  return z.uuid().toLowerCase().meta({ description, example: exampleId })
}

/** A moment in an answer: ISO 8601 UTC with milliseconds. */
export function timestamp(description: string) {
  return z.iso.datetime({ precision: 3 }).meta({ description, example: '2026-11-20T09:30:00.000Z' })
}

/** A moment in a request: ISO 8601 with `Z` or an offset, between the years 1970 and 9999. */
export function moment(description: string) {
  return z.iso
    .datetime({ offset: true, abort: true })
    .transform((value) => new Date(value))
    .refine(
      (value) => value.getTime() >= 0 && value.getUTCFullYear() <= 9999,
      'must lie between the years 1970 and 9999',
    )
    .meta({ description, example: '2027-01-31T00:00:00.000Z' })
}

const maxMetadataLength = 16_384
const maxMetadataDepth = 8

/** Plain JSON that jsonb keeps: no NUL, no lone surrogate, no infinite number, and not nested without end. */
function isStorable(value: unknown, depth: number): boolean {
  if (depth > maxMetadataDepth) return false
  if (typeof value === 'string') return value.isWellFormed() && !value.includes('\u0000')
  if (typeof value === 'number') return Number.isFinite(value)
  if (value === null || typeof value !== 'object') return true
  return Object.entries(value).every(([key, member]) => isStorable(key, depth) && isStorable(member, depth + 1))
}

export const metadata = z
  .record(z.string(), z.unknown())
  .refine(
    (value) => isStorable(value, 0) && JSON.stringify(value).length <= maxMetadataLength,
    `must be JSON of at most ${maxMetadataLength} characters, nested at most ${maxMetadataDepth} deep, without NUL`,
  )
  .meta({
    description: 'Anything the vendor keeps beside it; returned as given.',
    example: { order: 'A-1001' },
  })

/** Also an internationalised one: an @ between two parts, no blanks, a domain of non-empty labels. Mail alone can tell the rest. */
export const email = z
  .string()
  .max(320)
  .regex(/^[^\s@\p{Cc}\p{Cs}]+@(?:[^\s@.\p{Cc}\p{Cs}]+\.)+[^\s@.\p{Cc}\p{Cs}]+$/u, 'must be an e-mail address')
  .meta({ description: 'An e-mail address.', example: 'ada@example.com' })

/** Kept as given, but for one that nobody could see. */
export const name = text(200).refine((value) => value.trim() !== '', 'must not be blank')

export const limit = z
  .string()
  .regex(/^[0-9]{1,3}$/, 'must be a whole number from 1 to 100')
  .default('50')
  .transform(Number)
  .refine((value) => value >= 1 && value <= 100, 'must be a whole number from 1 to 100')
  .meta({
    description: 'How many to return, 1 to 100.',
    example: 50,
    override: { type: 'integer', minimum: 1, maximum: 100, default: 50 },
  })

export const cursor = text(200)
  .optional()
  .meta({ description: 'The `nextCursor` of the page before.', example: 'AZqLPF0ufxCKS2x9jp8KG5Yx0m0hBqkS' })

/** The query of a list with its own filters; unknown parameters are refused as unknown fields are. */
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

/** What a path of one resource carries. */
export const idParams = z.strictObject({ id: id('The id of the resource.') })

/** Who did something. */
export const actor = z
  .object({
    type: z.enum(['OPERATOR', 'MANAGEMENT_TOKEN', 'ACCESS_TOKEN', 'API_KEY', 'SYSTEM']).meta({
      description: 'What kind of caller it was.',
      example: 'MANAGEMENT_TOKEN',
    }),
    id: z.string().optional().meta({ description: 'The id of the credential.', example: exampleId }),
    name: z.string().optional().meta({ description: 'The name of the credential.', example: 'deploy script' }),
    memberId: z.string().optional().meta({ description: 'The member behind an access token.', example: exampleId }),
  })
  .meta({ id: 'Actor', description: 'Who did it.' })
export type Actor = z.infer<typeof actor>
