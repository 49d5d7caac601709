/** Checks input in the browser before it is sent, with the schemas and the messages of the service. */

import { describeIssue } from '@keyward/contract'
import type { z } from 'zod'

/** Maps the path of a field, such as `policy/expiresAt`, to its validation error. */
export type FieldErrors = Readonly<Record<string, string>>

export class InputError extends Error {
  override readonly name = 'InputError'
  readonly fields: FieldErrors

  constructor(fields: FieldErrors) {
    super(Object.entries(fields)[0]?.join(' ').trim() ?? '')
    this.fields = fields
  }
}

/** Throws InputError if the service would reject the value. */
export function checkInput<Schema extends z.ZodType>(schema: Schema, value: unknown): asserts value is z.input<Schema> {
  const parsed = schema.safeParse(value, { error: describeIssue })
  if (parsed.success) return
  const fields: Record<string, string> = {}
  const add = (path: readonly PropertyKey[], detail: string) => void (fields[path.join('/')] ??= detail)
  for (const issue of parsed.error.issues)
    if (issue.code === 'unrecognized_keys') for (const key of issue.keys) add([...issue.path, key], issue.message)
    else add(issue.path, issue.message)
  throw new InputError(fields)
}
