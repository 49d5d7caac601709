/**
 * Corrects license keys as people type and paste them. The service compares keys byte for byte (docs/api.md#h4), so the
 * client changes only keys that have the shape of generated ones; every other key is sent as it is.
 */

// The shape of generated keys. Their alphabet has no 0, 1, I and O.
const GENERATED = /^[2-9A-HJ-NP-Z]{4}(?:-[2-9A-HJ-NP-Z]{4}){3}$/i
// Blanks, and every hyphen and dash that word processors put in place of "-".
const SEPARATORS = /[\s\u2010-\u2015\u2212-]+/

/**
 * Returns ` k7qx 93fm–ttrw-h2zd ` as `K7QX-93FM-TTRW-H2ZD`: four groups of four characters of the generated alphabet, in
 * any case, with any blanks around them and any blanks and hyphens between them. Returns every other text unchanged.
 */
export function normalizeLicenseKey(text: string): string {
  const key = text.trim().split(SEPARATORS).join('-')
  return GENERATED.test(key) ? key.toUpperCase() : text
}
