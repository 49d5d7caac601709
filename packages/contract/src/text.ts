/**
 * Text as both services accept it: well-formed Unicode, and no NUL where it is to be stored as text.
 * Two different ids can then never become one by a lossy encoding.
 */
import { z } from 'zod'

const encoder = new TextEncoder()

/** The length of a text in UTF-8 bytes. */
export function byteLength(value: string): number {
  return encoder.encode(value).length
}

/** Text that Postgres can store: well-formed and without NUL. Lengths in code points, as zod and JSON Schema count. */
export function text(maxLength: number, minLength = 1) {
  return z
    .string()
    .min(minLength)
    .max(maxLength)
    .refine((value) => value.isWellFormed() && !value.includes('\u0000'), 'must be well-formed text without NUL')
}

/** Bytes that an app chose, written as text: kept and compared exactly, so every well-formed character is allowed. */
export function exactText(maxBytes: number) {
  return z
    .string()
    .min(1)
    .refine((value) => value.isWellFormed(), 'must be well-formed Unicode')
    .refine((value) => byteLength(value) <= maxBytes, `must be at most ${maxBytes} bytes of UTF-8`)
}

/** As `exactText`, where null and the empty string count as absent: null then. */
export function optionalExactText(maxBytes: number) {
  return z
    .string()
    .nullish()
    .transform((value) => value || null)
    .pipe(exactText(maxBytes).nullable())
}

/** Of 1 to 128 characters of ASCII (API document, licenses). A longer one cannot exist, so nobody looks for it. */
export const maxLicenseKeyBytes = 128
export const maxMachineIdBytes = 512
