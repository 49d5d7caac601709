/**
 * Parses the rows of an import one by one. Well-formed rows are validated further even if others are malformed, so one response lists the
 * errors of all rows. Between rows, the process serves other requests.
 */

import { describeIssue, MAX_IMPORT_ROWS } from '@keyward/contract'
import { z } from 'zod'

import { inTurns } from '../turns.ts'
import { parseJson } from './json.ts'
import { ApiError, invalidRequest, type ValidationError } from './problem.ts'
import type { SplitBody, SplitterOptions } from './row-splitter.ts'
import { type FoundErrors, pointerTo, validationErrors } from './validation-errors.ts'

const MAX_ERRORS_PER_ROW = 5

/** A well-formed row of an import. */
export interface Row<Input> {
  input: Input
  /** The JSON pointer to the row, such as `#/rules/17`. */
  pointer: string
}

export interface Rows<Input, Others = unknown> {
  /** The well-formed rows, in the order of the body. */
  rows: Row<Input>[]
  /** The errors of the other rows and of the members beside the list. */
  errors: ValidationError[]
  /** The members beside the list, or undefined when they have errors. */
  others?: Others | undefined
}

interface RowsOptions<Others extends z.ZodObject> {
  maxRowBytes: number
  /** The maximum number of rows. Default: `MAX_IMPORT_ROWS`. */
  maxRows?: number
  /** The minimum number of rows. Default: 1. */
  minRows?: number
  /** The schema of the members beside the list. Default: no members. */
  others?: Others
}

/** The splitter and the parser of the body of an import. */
export interface RowsOf<Body> {
  splitter: SplitterOptions
  /** The schema that validates a request without a body. The validation always fails, and yields the errors. */
  schema: z.ZodType<Body>
  /** Returns the rows, or the errors of the whole body. Throws IMPORT_TOO_LARGE. */
  parse(split: SplitBody): Promise<{ data: Body } | FoundErrors>
}

function importTooLarge(name: string, count: number, maxRows: number): ApiError {
  const pointer = pointerTo('#', [name])
  const limit = `at most ${maxRows.toLocaleString('en')} are allowed`
  return new ApiError('IMPORT_TOO_LARGE', `${pointer} has ${count} rows; ${limit}. Send several requests.`, {
    errors: [{ pointer, detail: `has ${count} rows; ${limit}` }],
  })
}

/** Parses the members beside the list. */
function otherMembers<Others extends z.ZodObject>(
  name: string,
  frame: object,
  schema: Others,
): { others?: z.output<Others>; errors: ValidationError[] } {
  const members = Object.fromEntries(Object.entries(frame).filter(([key]) => key !== name))
  const parsed = schema.safeParse(members, { error: describeIssue })
  if (parsed.success) return { others: parsed.data, errors: [] }
  return { errors: validationErrors('#', parsed.error, { most: MAX_ERRORS_PER_ROW }).errors }
}

/**
 * Returns the split body with its rows. If the name of the list contains escapes, the splitter does not recognize the list, and the rows
 * are taken from the frame.
 */
function withUnsplitRows(name: string, { frame, rows, count }: SplitBody, maxRows: number): SplitBody {
  const list: unknown =
    typeof frame === 'object' && frame !== null ? Object.entries(frame).find(([key]) => key === name)?.[1] : null
  if (!Array.isArray(list) || list.length === 0) return { frame, rows, count }
  const unsplit = list.slice(0, maxRows).map((row) => Buffer.from(JSON.stringify(row)))
  return { frame, rows: unsplit, count: list.length }
}

const noMembers = z.strictObject({})

/**
 * Returns the schema, or `noMembers` when the schema is undefined. A caller without a schema leaves `Schema` at its default, the type of
 * `noMembers`.
 */
function orNoMembers<Schema extends z.ZodObject>(schema: Schema | undefined): Schema
function orNoMembers(schema: z.ZodObject | undefined): z.ZodObject {
  return schema ?? noMembers
}

/** Defines the body of an import, `{[name]: [row, …]}`, with other members beside the list. */
export function rowsOf<Input, Others extends z.ZodObject = typeof noMembers>(
  name: string,
  row: z.ZodType<Input>,
  options: RowsOptions<Others>,
): RowsOf<Rows<Input, z.output<Others>>> {
  const { maxRowBytes, maxRows = MAX_IMPORT_ROWS, minRows = 1 } = options
  const othersSchema = orNoMembers<Others>(options.others)
  const frameSchema = z.looseObject({ [name]: z.array(z.unknown()) })
  const absent = z
    .looseObject({ [name]: z.array(z.never()).min(1) })
    .transform((): Rows<Input, z.output<Others>> => ({ rows: [], errors: [] }))
  return {
    splitter: { name, maxRows, maxRowBytes },
    schema: absent,
    async parse(split) {
      const { frame, rows: list, count } = withUnsplitRows(name, split, maxRows)
      if (count > maxRows) throw importTooLarge(name, count, maxRows)
      const parsed = frameSchema.safeParse(frame, { error: describeIssue })
      if (!parsed.success) return validationErrors('#', parsed.error)
      if (count < minRows)
        return { errors: [{ pointer: pointerTo('#', [name]), detail: 'must not be empty' }], count: 1 }
      const result: Rows<Input, z.output<Others>> = { rows: [], ...otherMembers(name, parsed.data, othersSchema) }
      for await (const [at, bytes] of inTurns(list.entries())) {
        const one = row.safeParse(parseJson(bytes, [name, at]), { error: describeIssue })
        if (one.success) result.rows.push({ input: one.data, pointer: pointerTo('#', [name, at]) })
        else
          result.errors.push(...validationErrors('#', one.error, { base: [name, at], most: MAX_ERRORS_PER_ROW }).errors)
      }
      return { data: result }
    },
  }
}

/** Returns INVALID_REQUEST with all errors, in the order of the rows (the number in `#/rules/17/value`). */
export function invalidRows(errors: readonly ValidationError[]): ApiError {
  const rowOf = ({ pointer }: ValidationError) => Number(/^#\/[^/]+\/(\d+)/.exec(pointer)?.[1] ?? -1)
  const sorted = errors.toSorted((a, b) => rowOf(a) - rowOf(b))
  return invalidRequest(sorted, sorted.length, sorted.length)
}
