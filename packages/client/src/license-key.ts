/**
 * Reads license keys as people type and paste them. The service compares keys byte for byte (docs/api.md#h4), so a text that
 * may be a generated key typed differently, or a vendor's own key, stands for both.
 */

// 16 characters of the alphabet of generated keys, which has no 0, 1, I and O.
const GENERATED = /^[2-9A-HJ-NP-Z]{16}$/i
// Blanks, and every hyphen and dash that word processors put in place of "-".
const SEPARATORS = /[\s\u2010-\u2015\u2212-]+/g
// No license has any other key (docs/api.md#m7).
const POSSIBLE = /^[\x20-\x7e]{1,128}$/

/**
 * Returns the license keys that a text may stand for, the likeliest first: the text without blanks around it, and if it
 * differs, the generated key that it spells in any case, with or without blanks and hyphens. `k7qx93fmttrwh2zd` may be the
 * key `k7qx93fmttrwh2zd` of the vendor or the generated key `K7QX-93FM-TTRW-H2ZD`.
 */
export function possibleLicenseKeys(text: string): [first: string, second?: string] {
  const typed = text.trim()
  const letters = typed.replaceAll(SEPARATORS, '')
  if (!GENERATED.test(letters)) return [typed]
  const generated = letters.toUpperCase().replaceAll(/.{4}(?=.)/g, '$&-')
  if (generated === typed) return [typed]
  return POSSIBLE.test(typed) ? [typed, generated] : [generated]
}
