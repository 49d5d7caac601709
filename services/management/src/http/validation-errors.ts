/** Converts the issues of zod into validation errors. Each pointer gets one error, for its first issue. */

import type { z } from 'zod'

import { MAX_LISTED_ERRORS, type ValidationError } from './problem.ts'

type Path = readonly PropertyKey[]

/** The maximum length of a name in a pointer. The caller chooses the names, and a name may be as long as the body. */
const MAX_SHOWN_NAME_LENGTH = 30

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

/** Returns the detail for a name that the schema does not contain. */
function unknownName(root: '#' | '?'): string {
  return root === '?' ? 'is not a known parameter' : 'is not a known field'
}

/** The first errors of a value, and the number of all errors. */
export interface FoundErrors {
  errors: ValidationError[]
  count: number
}

/** Returns the errors of the value at `base` in the input. Lists at most `most` errors, and counts all. */
export function validationErrors(
  root: '#' | '?',
  error: z.ZodError,
  { base = [], most = MAX_LISTED_ERRORS }: { base?: Path; most?: number } = {},
): FoundErrors {
  const byPointer = new Map<string, ValidationError>()
  let count = 0
  const add = (path: Path, detail: string) => {
    if (byPointer.size === most) {
      count++
      return
    }
    const pointer = pointerTo(root, [...base, ...path])
    if (byPointer.has(pointer)) return
    byPointer.set(pointer, { pointer, detail })
    count++
  }
  for (const issue of error.issues)
    if (issue.code === 'unrecognized_keys') for (const key of issue.keys) add([...issue.path, key], unknownName(root))
    else add(issue.path, issue.message)
  return { errors: [...byPointer.values()], count }
}
