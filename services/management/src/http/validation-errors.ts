/**
 * Turns the issues of zod into validation errors: one for each place, the first issue of that place, in plain words. The rows of an
 * import are parsed one by one, so that well-formed rows are checked further and one response lists every error.
 */

import { describeIssue } from '@keyward/contract'
import { z } from 'zod'

import { type ApiError, invalidRequest, type ValidationError } from './problem.ts'

type Path = readonly PropertyKey[]

/** A longer name in a pointer is cut: the caller chooses it, and it may be as long as the body. */
const MAX_SHOWN_NAME_LENGTH = 100
const MAX_ERRORS_PER_ROW = 5

function escape(part: PropertyKey): string {
  const name = String(part)
  const shown = name.length > MAX_SHOWN_NAME_LENGTH ? `${name.slice(0, MAX_SHOWN_NAME_LENGTH)}…` : name
  return encodeURIComponent(shown.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'))
}

/** Returns a JSON pointer into the body (`#/a/0`), or `?name` for a query parameter. */
export function pointerTo(root: '#' | '?', path: Path): string {
  if (root === '?') return `?${path.map(String).join('.')}`
  return `#${path.map((part) => `/${escape(part)}`).join('')}`
}

function unknownName(root: '#' | '?'): string {
  return root === '?' ? 'is not a known parameter' : 'is not a known field'
}

/** Returns the errors of the value at `base` in the input. */
export function validationErrors(root: '#' | '?', error: z.ZodError, base: Path = []): ValidationError[] {
  const byPointer = new Map<string, ValidationError>()
  const add = (path: Path, detail: string) => {
    const pointer = pointerTo(root, [...base, ...path])
    if (!byPointer.has(pointer)) byPointer.set(pointer, { pointer, detail })
  }
  for (const issue of error.issues)
    if (issue.code === 'unrecognized_keys') for (const key of issue.keys) add([...issue.path, key], unknownName(root))
    else add(issue.path, issue.message)
  return [...byPointer.values()]
}

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

/** The schema of an import's body, `{[name]: [row, …]}`, which parses each row by its own. */
export function rowByRow<Input>(name: string, schema: z.ZodType<Input>): z.ZodType<Rows<Input>> {
  return z.looseObject({ [name]: z.array(z.unknown()).min(1) }).transform((body) => {
    const list: unknown = body[name]
    const others = Object.keys(body).filter((key) => key !== name)
    const errors = others
      .slice(0, MAX_ERRORS_PER_ROW)
      .map((key) => ({ pointer: pointerTo('#', [key]), detail: unknownName('#') }))
    const rows: Row<Input>[] = []
    for (const [at, given] of (Array.isArray(list) ? list : []).entries()) {
      const parsed = schema.safeParse(given, { error: describeIssue })
      if (parsed.success) rows.push({ input: parsed.data, pointer: pointerTo('#', [name, at]) })
      else errors.push(...validationErrors('#', parsed.error, [name, at]).slice(0, MAX_ERRORS_PER_ROW))
    }
    return { rows, errors }
  })
}

/** Returns a 422 that lists the errors of all rows, in the order of the rows (the number in `#/rules/17/value`). */
export function invalidRows(errors: readonly ValidationError[]): ApiError {
  const rowOf = ({ pointer }: ValidationError) => Number(/^#\/[^/]+\/(\d+)/.exec(pointer)?.[1] ?? -1)
  return invalidRequest(
    errors.toSorted((a, b) => rowOf(a) - rowOf(b)),
    errors.length,
  )
}
