/**
 * From what zod finds to what the caller is told: one pointer for each place, the first thing that is wrong there, in plain words.
 * An import is judged row by row, so that the rows that are well-formed can be judged further and all faults told at once.
 */
import { describeIssue } from '@keyward/contract'
import { z } from 'zod'

import { type Fault, invalidAll, type Refusal } from './problem.ts'

type Path = readonly PropertyKey[]

/** A member's name in a pointer is cut here: it is the caller's, and may be as long as the body. */
const maxNameLength = 100
/** More is never told of one row, whatever is in it. */
const maxFaultsOfRow = 5

function escape(part: PropertyKey): string {
  const name = String(part)
  const shown = name.length > maxNameLength ? `${name.slice(0, maxNameLength)}…` : name
  return encodeURIComponent(shown.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1'))
}

export function pointerTo(root: '#' | '?', path: Path): string {
  if (root === '?') return `?${path.map(String).join('.')}`
  return `#${path.map((part) => `/${escape(part)}`).join('')}`
}

/** The faults of what lies at `base` in the input. */
export function faultsOf(root: '#' | '?', error: z.ZodError, base: Path = []): Fault[] {
  const byPointer = new Map<string, Fault>()
  const add = (path: Path, detail: string) => {
    const pointer = pointerTo(root, [...base, ...path])
    if (!byPointer.has(pointer)) byPointer.set(pointer, { pointer, detail })
  }
  for (const issue of error.issues)
    if (issue.code === 'unrecognized_keys') for (const key of issue.keys) add([...issue.path, key], 'is not known')
    else add(issue.path, issue.message)
  return [...byPointer.values()]
}

/** A row of an import that is well-formed, and where it stands. */
export interface Row<Input> {
  input: Input
  at: number
  pointer: string
}

export interface Rows<Input> {
  rows: Row<Input>[]
  /** What is wrong with the other rows, and with what is beside them. */
  faults: Fault[]
}

/** `{[name]: [row, …]}`: each row by its own. */
export function rowByRow<Input>(name: string, schema: z.ZodType<Input>): z.ZodType<Rows<Input>> {
  return z.looseObject({ [name]: z.array(z.unknown()).min(1) }).transform((body) => {
    const list: unknown = body[name]
    const others = Object.keys(body).filter((key) => key !== name)
    const faults = others
      .slice(0, maxFaultsOfRow)
      .map((key) => ({ pointer: pointerTo('#', [key]), detail: 'is not known' }))
    const rows: Row<Input>[] = []
    for (const [at, given] of (Array.isArray(list) ? list : []).entries()) {
      const parsed = schema.safeParse(given, { error: describeIssue })
      if (parsed.success) rows.push({ input: parsed.data, at, pointer: pointerTo('#', [name, at]) })
      else faults.push(...faultsOf('#', parsed.error, [name, at]).slice(0, maxFaultsOfRow))
    }
    return { rows, faults }
  })
}

/** 422 with every bad row, in their order, which is the number in `#/rules/17/value`. */
export function invalidRows(faults: readonly Fault[]): Refusal {
  const rowOf = ({ pointer }: Fault) => Number(/^#\/[^/]+\/(\d+)/.exec(pointer)?.[1] ?? -1)
  return invalidAll(
    faults.toSorted((a, b) => rowOf(a) - rowOf(b)),
    faults.length,
  )
}
