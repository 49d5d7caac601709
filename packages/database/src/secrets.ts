/**
 * Secrets of callers: API keys, management tokens, personal access tokens, invitations, sessions, and links and sessions of the portal
 * (docs/api.md#a1). A secret consists of
 * a prefix for its kind, 30 random base62 characters, and their CRC-32 in 6 more characters. The checksum reveals a typing mistake without
 * a lookup, and helps scanners to detect leaked secrets. Only the SHA-256 is stored. A secret has 178 random bits, so no slow hash is
 * needed.
 */

import { createHash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'

export type SecretKind =
  | 'API_KEY'
  | 'MANAGEMENT_TOKEN'
  | 'ACCESS_TOKEN'
  | 'INVITATION'
  | 'SESSION'
  | 'PORTAL_LINK'
  | 'PORTAL_SESSION'

const PREFIXES: Record<SecretKind, string> = {
  API_KEY: 'kwk_',
  MANAGEMENT_TOKEN: 'kwm_',
  ACCESS_TOKEN: 'kwp_',
  INVITATION: 'kwi_',
  SESSION: 'kws_',
  PORTAL_LINK: 'kwl_',
  PORTAL_SESSION: 'kwc_',
}

const KINDS: readonly SecretKind[] = [
  'API_KEY',
  'MANAGEMENT_TOKEN',
  'ACCESS_TOKEN',
  'INVITATION',
  'SESSION',
  'PORTAL_LINK',
  'PORTAL_SESSION',
]

const ALPHABET = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const RANDOM_LENGTH = 30
const CHECKSUM_LENGTH = 6
const SHAPE = /^(kwk_|kwm_|kwp_|kwi_|kws_|kwl_|kwc_)([0-9A-Za-z]{30})([0-9A-Za-z]{6})$/

/** The number of leading characters of a secret that are shown in lists, including the prefix of its kind. */
const SHOWN_LENGTH = 8

export interface Secret {
  readonly kind: SecretKind
  /** The whole secret, which is shown once. */
  readonly secret: string
  /** The first characters of the secret, by which people recognize it. */
  readonly prefix: string
  /** The SHA-256 of the secret, 32 bytes. Only this hash is stored. */
  readonly hash: Uint8Array
}

/** Returns a new random secret. */
export function createSecret(kind: SecretKind): Secret {
  const random = randomBase62(RANDOM_LENGTH)
  const secret = PREFIXES[kind] + random + checksum(random)
  return { kind, secret, prefix: secret.slice(0, SHOWN_LENGTH), hash: hashSecret(secret) }
}

/** Returns the kind of a secret, or null when the form or the checksum is wrong. */
export function parseSecret(text: string): { kind: SecretKind } | null {
  const match = SHAPE.exec(text)
  if (match === null || checksum(match[2] ?? '') !== match[3]) return null
  const kind = KINDS.find((candidate) => PREFIXES[candidate] === match[1])
  return kind === undefined ? null : { kind }
}

/** Returns the SHA-256 of a secret. */
export function hashSecret(text: string): Uint8Array {
  return createHash('sha256').update(text).digest()
}

/** Returns random base62 characters. Discards bytes from 248 = 4 x 62 on, so that all characters are equally likely. */
function randomBase62(length: number): string {
  let text = ''
  while (text.length < length) {
    for (const byte of randomBytes(length)) if (byte < 248 && text.length < length) text += ALPHABET[byte % 62]
  }
  return text
}

function checksum(random: string): string {
  let rest = crc32(random)
  let text = ''
  for (let i = 0; i < CHECKSUM_LENGTH; i++) {
    text = ALPHABET.charAt(rest % 62) + text
    rest = Math.floor(rest / 62)
  }
  return text
}
