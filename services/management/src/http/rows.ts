/**
 * The rows of an import. They are parsed one by one, so that well-formed rows are checked further and one response lists every error.
 * Between rows the process serves other requests.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'

import { describeIssue, MAX_IMPORT_ROWS } from '@keyward/contract'
import { z } from 'zod'

import { parseJson } from './json.ts'
import { ApiError, invalidRequest, type ValidationError } from './problem.ts'
import type { SplitBody, SplitterOptions } from './row-splitter.ts'
import { type FoundErrors, pointerTo, unknownName, validationErrors } from './validation-errors.ts'

const MAX_ERRORS_PER_ROW = 5
/** Longer than this, the rows of an import do not keep other requests waiting. */
const MAX_TURN_MS = 5

/** A well-formed row of an import. */
export interface Row<Input> {
  input: Input
  /** `#/rules/17`. */
  pointer: string
}

export interface Rows<Input> {
  /** The well-formed rows, in the order of the body. */
  rows: Row<Input>[]
  /** The errors of the other rows and of unknown members beside the list. */
  errors: ValidationError[]
}

/** How the body of an import is split and parsed. */
export interface RowsOf<Body> {
  splitter: SplitterOptions
  /** The schema of a body that is absent. It yields only errors. */
  schema: z.ZodType<Body>
  /** Returns the rows or the errors of the body as a whole. Throws IMPORT_TOO_LARGE. */
  parse(split: SplitBody): Promise<{ data: Body } | FoundErrors>
}

function importTooLarge(name: string, count: number): ApiError {
  const pointer = pointerTo('#', [name])
  const limit = `an import takes at most ${MAX_IMPORT_ROWS.toLocaleString('en')}`
  return new ApiError('IMPORT_TOO_LARGE', `${pointer} has ${count} rows; ${limit}. Send several imports.`, {
    errors: [{ pointer, detail: `has ${count} rows; ${limit}` }],
  })
}

/** The unknown members beside the list. */
function otherMembers(name: string, frame: object): ValidationError[] {
  const others = Object.keys(frame).filter((key) => key !== name)
  return others
    .slice(0, MAX_ERRORS_PER_ROW)
    .map((key) => ({ pointer: pointerTo('#', [key]), detail: unknownName('#') }))
}

/** Returns the split body with the rows that were not recognized while it arrived, such as those of a name with escapes. */
function withUnsplitRows(name: string, { frame, rows, count }: SplitBody): SplitBody {
  const list: unknown =
    typeof frame === 'object' && frame !== null ? Object.entries(frame).find(([key]) => key === name)?.[1] : null
  if (!Array.isArray(list) || list.length === 0) return { frame, rows, count }
  const unsplit = list.slice(0, MAX_IMPORT_ROWS).map((row) => Buffer.from(JSON.stringify(row)))
  return { frame, rows: unsplit, count: list.length }
}

/** The body of an import, `{[name]: [row, …]}`. */
export function rowsOf<Input>(
  name: string,
  row: z.ZodType<Input>,
  { maxRowBytes }: { maxRowBytes: number },
): RowsOf<Rows<Input>> {
  const frameSchema = z.looseObject({ [name]: z.array(z.unknown()) })
  const absent = z
    .looseObject({ [name]: z.array(z.never()).min(1) })
    .transform((): Rows<Input> => ({ rows: [], errors: [] }))
  return {
    splitter: { name, maxRows: MAX_IMPORT_ROWS, maxRowBytes },
    schema: absent,
    async parse(split) {
      const { frame, rows: list, count } = withUnsplitRows(name, split)
      if (count > MAX_IMPORT_ROWS) throw importTooLarge(name, count)
      const parsed = frameSchema.safeParse(frame, { error: describeIssue })
      if (!parsed.success) return validationErrors('#', parsed.error)
      if (count === 0) return { errors: [{ pointer: pointerTo('#', [name]), detail: 'must not be empty' }], count: 1 }
      const result: Rows<Input> = { rows: [], errors: otherMembers(name, parsed.data) }
      let turnEndsMs = performance.now() + MAX_TURN_MS
      for (const [at, bytes] of list.entries()) {
        if (performance.now() > turnEndsMs) {
          await nextTurn()
          turnEndsMs = performance.now() + MAX_TURN_MS
        }
        const one = row.safeParse(parseJson(bytes, [name, at]), { error: describeIssue })
        if (one.success) result.rows.push({ input: one.data, pointer: pointerTo('#', [name, at]) })
        else
          result.errors.push(...validationErrors('#', one.error, { base: [name, at], most: MAX_ERRORS_PER_ROW }).errors)
      }
      return { data: result }
    },
  }
}

/** Returns a 422 that lists the errors of all rows, in the order of the rows (the number in `#/rules/17/value`). */
export function invalidRows(errors: readonly ValidationError[]): ApiError {
  const rowOf = ({ pointer }: ValidationError) => Number(/^#\/[^/]+\/(\d+)/.exec(pointer)?.[1] ?? -1)
  const sorted = errors.toSorted((a, b) => rowOf(a) - rowOf(b))
  return invalidRequest(sorted, sorted.length, sorted.length)
}
