/** Checks input in the browser before it is sent, with the schemas and the messages of the service. */

import { describeIssue } from '@keyward/contract'
import type { z } from 'zod'

/** Maps the path of a field, such as `policy/expiresAt`, to its validation error. */
export type FieldErrors = Readonly<Record<string, string>>

export class InputError extends Error {
  override readonly name = 'InputError'
  readonly fields: FieldErrors

  constructor(fields: FieldErrors) {
    super(Object.entries(fields)[0]?.join(' ') ?? '')
    this.fields = fields
  }
}

/** Throws InputError if the service would reject the value. */
export function checkInput<Schema extends z.ZodType>(schema: Schema, value: unknown): asserts value is z.input<Schema> {
  const parsed = schema.safeParse(value, { error: describeIssue })
  if (parsed.success) return
  throw new InputError(Object.fromEntries(parsed.error.issues.map(({ path, message }) => [path.join('/'), message])))
}
