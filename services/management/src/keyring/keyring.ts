/**
 * Encrypts private signing keys and secrets of webhook endpoints at rest, with AES-256-GCM under the master key. A sealed key is bound to
 * its organization and key id, so it cannot be opened in another row. The previous master key only opens keys. It is needed until all keys
 * are sealed under the current one.
 */

import { createCipheriv, createDecipheriv, createHash, type KeyObject, randomBytes, sign } from 'node:crypto'
import { promisify } from 'node:util'

import { privateKeyOf } from '@keyward/runtime/ed25519'

const signInPool = promisify(sign)

interface SealedKey {
  organizationId: string
  keyId: string
  masterKeyId: string
  privateKeyEncrypted: Uint8Array
}

export interface Keyring {
  /** The id of the master key that seals keys. */
  readonly currentId: string
  seal(organizationId: string, keyId: string, privateKey: Uint8Array): Buffer
  /** Returns the private key. Throws for an unknown master key and for a modified sealed key. */
  open(sealed: SealedKey): Buffer
  /**
   * Signs with a sealed signing key, in a thread of libuv's pool. A signature takes about 50 us, which the main thread can use for other
   * requests. Rejects with the errors of `open`.
   */
  sign(sealed: SealedKey, bytes: Uint8Array): Promise<Buffer>
  canOpen(masterKeyId: string): boolean
}

const ALGORITHM = 'aes-256-gcm'
const MASTER_KEY_BYTES = 32
const NONCE_BYTES = 12
const TAG_BYTES = 16

/** Parses a master key of 32 bytes, written as 64 hexadecimal digits, in base64 or in base64url. Returns undefined for any other text. */
export function parseMasterKey(text: string): Buffer | undefined {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  if (!isHex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const key = Buffer.from(text, isHex ? 'hex' : 'base64')
  return key.length === MASTER_KEY_BYTES ? key : undefined
}

/** The time in milliseconds for which an opened signing key is kept. Opening a key takes longer than signing. */
const OPEN_MS = 60_000
/** The maximum number of opened signing keys that are kept. */
const MAX_OPEN = 1_000

interface OpenedKey {
  key: KeyObject
  untilMs: number
}

/** Returns the id of a master key, a hash that does not reveal the key. */
export function masterKeyId(key: Uint8Array): string {
  return createHash('sha256').update('keyward master key id\n').update(key).digest('hex').slice(0, 16)
}

function boundTo(organizationId: string, keyId: string): Buffer {
  return Buffer.from(`${organizationId}\n${keyId}`)
}

export function createKeyring(current: Uint8Array, previous: Uint8Array | null): Keyring {
  const keys = new Map([current, ...(previous ? [previous] : [])].map((key) => [masterKeyId(key), key]))
  const currentId = masterKeyId(current)
  const open = ({ organizationId, keyId, masterKeyId: id, privateKeyEncrypted }: SealedKey): Buffer => {
    const key = keys.get(id)
    if (!key)
      throw new Error(
        `The signing key ${keyId} is sealed under the master key ${id}, which is neither KEYWARD_MASTER_KEY nor KEYWARD_MASTER_KEY_PREVIOUS.`,
      )
    const sealed = Buffer.from(privateKeyEncrypted)
    const decipher = createDecipheriv(ALGORITHM, key, sealed.subarray(0, NONCE_BYTES), { authTagLength: TAG_BYTES })
    decipher.setAAD(boundTo(organizationId, keyId))
    decipher.setAuthTag(sealed.subarray(sealed.length - TAG_BYTES))
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, sealed.length - TAG_BYTES)), decipher.final()])
  }

  /** The opened signing keys, oldest first, by all fields of their SealedKey. */
  const opened = new Map<string, OpenedKey>()
  const openToSign = (sealed: SealedKey): KeyObject => {
    const { organizationId, keyId, masterKeyId: id, privateKeyEncrypted } = sealed
    const name = `${organizationId} ${keyId} ${id} ${Buffer.from(privateKeyEncrypted).toString('latin1')}`
    const nowMs = performance.now()
    const known = opened.get(name)
    if (known && known.untilMs > nowMs) return known.key
    const key = privateKeyOf(open(sealed))
    opened.delete(name)
    const [oldest] = opened.keys()
    if (opened.size >= MAX_OPEN && oldest !== undefined) opened.delete(oldest)
    opened.set(name, { key, untilMs: nowMs + OPEN_MS })
    return key
  }

  return {
    currentId,
    canOpen: (id) => keys.has(id),
    open,
    sign: async (sealed, bytes) => signInPool(null, bytes, openToSign(sealed)),
    seal(organizationId, keyId, privateKey) {
      const nonce = randomBytes(NONCE_BYTES)
      const cipher = createCipheriv(ALGORITHM, current, nonce)
      cipher.setAAD(boundTo(organizationId, keyId))
      return Buffer.concat([nonce, cipher.update(privateKey), cipher.final(), cipher.getAuthTag()])
    },
  }
}
