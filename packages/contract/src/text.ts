/**
 * Schemas for text. Both services require well-formed Unicode, because a lossy encoding could make two different ids equal
 * (docs/api.md#h4). Columns of type `text` in Postgres also exclude NUL.
 */

import { z } from 'zod'

const encoder = new TextEncoder()

/** Returns the length of a text in UTF-8 bytes. */
export function byteLength(value: string): number {
  return encoder.encode(value).length
}

/** Returns the schema of text that Postgres can store: well-formed and without NUL. The lengths are in code points, as in JSON Schema. */
export function text(maxLength: number, minLength = 1) {
  return z
    .string()
    .min(minLength)
    .max(maxLength)
    .refine((value) => value.isWellFormed() && !value.includes('\u0000'), 'must be well-formed text without NUL')
}

/** Returns the schema of a string that an app chooses, of at most `maxBytes` bytes in UTF-8. Any well-formed text is allowed. */
export function exactText(maxBytes: number) {
  return z
    .string()
    .min(1)
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .refine((value) => byteLength(value) <= maxBytes, `must be at most ${maxBytes} bytes of UTF-8`)
}

/** Returns the schema of an optional `exactText`. Absent, null and empty values become null. */
export function optionalExactText(maxBytes: number) {
  return z
    .string()
    .nullish()
    .transform((value) => value || null)
    .pipe(exactText(maxBytes).nullable())
}

/** The maximum length of a license key. All characters of a license key are ASCII. Longer keys are rejected without a lookup. */
export const MAX_LICENSE_KEY_BYTES = 128
export const MAX_MACHINE_ID_BYTES = 512

/**
 * Returns the text of a cell of CSV with an apostrophe before a character that begins a formula, because apps choose machine ids and a
 * spreadsheet would compute the formula. `readCell` returns the original text.
 */
export function writeCell(value: string): string {
  return /^'*[=+\-@\t\r]/.test(value) ? `'${value}` : value
}

export function readCell(cell: string): string {
  return /^'+[=+\-@\t\r]/.test(cell) ? cell.slice(1) : cell
}
