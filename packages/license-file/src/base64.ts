/**
 * Base64 in two forms: standard with padding (public keys) and URL-safe without padding (files). Invariant: decoding is
 * canonical. It accepts only the text that the encoder produces, so each file and each key has exactly one valid text.
 */

/** Encodes bytes as standard base64 with padding (RFC 4648, section 4). */
export function encodeBase64(bytes: Uint8Array): string {
  let binary = ''
  for (const byte of bytes) binary += String.fromCharCode(byte)
  return btoa(binary)
}

/** Decodes canonical standard base64. Returns null for any other text. */
export function decodeBase64(text: string): Uint8Array | null {
  const bytes = decodeLeniently(text)
  return bytes !== null && encodeBase64(bytes) === text ? bytes : null
}

/** Encodes bytes as URL-safe base64 without padding (RFC 4648, section 5). */
export function encodeBase64Url(bytes: Uint8Array): string {
  return encodeBase64(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
}

/** Decodes canonical, unpadded URL-safe base64. Returns null for any other text. */
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
