/**
 * Parses license keys as people type and paste them. The service compares keys byte for byte (docs/api.md#h4). A text in the
 * form of a generated key can also be a vendor's own key, so both keys are possible.
 */

// 16 characters of the alphabet of generated keys, which excludes 0, 1, I and O.
const GENERATED = /^[2-9A-HJ-NP-Z]{16}$/i
// Blanks, hyphens, and the dashes that word processors insert instead of "-".
const SEPARATORS = /[\s\u2010-\u2015\u2212-]+/g
// The form of all license keys (docs/api.md#m7).
const POSSIBLE = /^[\x20-\x7e]{1,128}$/

/**
 * Returns the license keys that a text may mean, the most likely key first. The first key is the text without surrounding blanks, unless
 * that cannot be a key. The second is the normalized generated key, if it differs from the first: `k7qx93fmttrwh2zd` can be a key of the
 * vendor or the generated key `K7QX-93FM-TTRW-H2ZD`.
 */
export function possibleLicenseKeys(text: string): [first: string, second?: string] {
  const typed = text.trim()
  const letters = typed.replaceAll(SEPARATORS, '')
  if (!GENERATED.test(letters)) return [typed]
  const generated = letters.toUpperCase().replaceAll(/.{4}(?=.)/g, '$&-')
  if (generated === typed) return [typed]
  return POSSIBLE.test(typed) ? [typed, generated] : [generated]
}
