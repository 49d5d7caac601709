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
 * Matches control characters, and the characters that change the direction of text. A terminal interprets the former, and the latter make
 * a text look like another one.
 */
const UNSAFE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu

const escaped = (character: string): string => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`

/** Escapes the unsafe characters of a text as in JSON, such as `\u001b`. Users of apps choose machine ids and host names. */
export function oneLine(value: string): string {
  return value.replace(UNSAFE, escaped)
}

/** Escapes the unsafe characters of a text with several lines. */
export function lines(value: string): string {
  return value.replace(UNSAFE, (character) => (character === '\n' ? character : escaped(character)))
}

/**
 * Returns the text of a cell of CSV with escaped unsafe characters, and with an apostrophe before a character that begins a formula, because
 * apps choose machine ids and a spreadsheet would compute the formula. A spreadsheet that separates cells by semicolons, as in German, begins a
 * cell inside the text too. `readCell` returns the original text.
 */
export function writeCell(value: string): string {
  const shown = lines(value.replace(/\\(?=u[0-9a-f]{4})/g, escaped))
  return shown.replaceAll(/(^|[;\n])(?='*[=+\-@])/g, "$1'")
}

export function readCell(cell: string): string {
  const shown = cell.replaceAll(/(^|[;\n])'(?='*[=+\-@])|^'(?='*[\t\r])/g, '$1')
  return shown.replace(/\\u([0-9a-f]{4})/g, (found, code: string) => {
    const character = String.fromCharCode(Number.parseInt(code, 16))
    return character === '\\' || oneLine(character) !== character ? character : found
  })
}
