/**
 * Text as both services accept it: well-formed Unicode, without NUL where Postgres stores it as text, so that no lossy
 * encoding makes two different ids equal (docs/api.md#h4).
 */

import { z } from 'zod'

const encoder = new TextEncoder()

/** Returns the length of a text in UTF-8 bytes. */
export function byteLength(value: string): number {
  return encoder.encode(value).length
}

/** Text that Postgres can store: well-formed and without NUL. Lengths are code points, as zod and JSON Schema count them. */
export function text(maxLength: number, minLength = 1) {
  return z
    .string()
    .min(minLength)
    .max(maxLength)
    .refine((value) => value.isWellFormed() && !value.includes('\u0000'), 'must be well-formed text without NUL')
}

/** Returns the schema of a string that an app chose, at most `maxBytes` long in UTF-8. It is stored and compared exactly, so every well-formed character is allowed. */
export function exactText(maxBytes: number) {
  return z
    .string()
    .min(1)
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .refine((value) => byteLength(value) <= maxBytes, `must be at most ${maxBytes} bytes of UTF-8`)
}

/** Like `exactText`, but null and the empty string count as absent and become null. */
export function optionalExactText(maxBytes: number) {
  return z
    .string()
    .nullish()
    .transform((value) => value || null)
    .pipe(exactText(maxBytes).nullable())
}

/** A license key has 1 to 128 ASCII characters, so a longer one cannot exist and is not looked up. */
export const MAX_LICENSE_KEY_BYTES = 128
export const MAX_MACHINE_ID_BYTES = 512
