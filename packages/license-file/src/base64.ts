// Base64 in the two spellings that licenses use: standard with padding (public keys) and URL-safe without (files).
// Decoding is canonical: of the many texts that lenient decoders map to the same bytes, only the one that encoding
// gives is accepted, so that no file and no key has a second spelling.

/** Standard base64 with padding (RFC 4648, section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** The bytes of canonical standard base64, or null for every other text. */
export function decodeBase64(text: string): Uint8Array | null {
  const bytes = decodeLeniently(text)
  return bytes !== null && encodeBase64(bytes) === text ? bytes : null
}

/** URL-safe base64 without padding (RFC 4648, section 5). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** The bytes of canonical, unpadded URL-safe base64, or null for every other text. */
export function decodeBase64Url(text: string): Uint8Array | null {
  const bytes = decodeLeniently(text.replaceAll('-', '+').replaceAll('_', '/'))
  return bytes !== null && encodeBase64Url(bytes) === text ? bytes : null
}

function decodeLeniently(text: string): Uint8Array | null {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
  } catch {
    return null
  }
}
