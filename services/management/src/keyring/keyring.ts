/**
 * Private signing keys at rest: AES-256-GCM under the master key, bound to their organization and key id, so that a sealed key
 * copied to another row does not open. A second, previous master key opens what is not yet sealed anew; nothing is sealed under it.
 */
import { createCipheriv, createDecipheriv, createHash, randomBytes } from 'node:crypto'

export interface SealedKey {
  organizationId: string
  keyId: string
  masterKeyId: string
  privateKeyEncrypted: Uint8Array
}

export interface Keyring {
  /** The master key that seals. */
  readonly currentId: string
  seal(organizationId: string, keyId: string, privateKey: Uint8Array): Buffer
  /** Throws when no known master key fits or the sealed key was tampered with. */
  open(sealed: SealedKey): Buffer
  canOpen(masterKeyId: string): boolean
}

const algorithm = 'aes-256-gcm'
const masterKeyBytes = 32
const nonceBytes = 12
const tagBytes = 16

/** 32 bytes as 64 hexadecimal digits or as base64, either alphabet; undefined for anything else. */
export function parseMasterKey(text: string): Buffer | undefined {
  const isHex = /^[0-9a-f]{64}$/i.test(text)
  if (!isHex && !/^[A-Za-z0-9+/_-]{43}=?$/.test(text)) return undefined
  const key = Buffer.from(text, isHex ? 'hex' : 'base64')
  return key.length === masterKeyBytes ? key : undefined
}

/** Names a master key without telling anything about it. */
export function masterKeyId(key: Uint8Array): string {
  return createHash('sha256').update('keyward master key id\n').update(key).digest('hex').slice(0, 16)
}

function boundTo(organizationId: string, keyId: string): Buffer {
  return Buffer.from(`${organizationId}\n${keyId}`)
}

export function createKeyring(current: Uint8Array, previous: Uint8Array | null): Keyring {
  const keys = new Map([current, ...(previous ? [previous] : [])].map((key) => [masterKeyId(key), key]))
  const currentId = masterKeyId(current)
  return {
    currentId,
    canOpen: (id) => keys.has(id),
    seal(organizationId, keyId, privateKey) {
      const nonce = randomBytes(nonceBytes)
      const cipher = createCipheriv(algorithm, current, nonce)
      cipher.setAAD(boundTo(organizationId, keyId))
      return Buffer.concat([nonce, cipher.update(privateKey), cipher.final(), cipher.getAuthTag()])
    },
    open({ organizationId, keyId, masterKeyId: id, privateKeyEncrypted }) {
      const key = keys.get(id)
      if (!key) throw new Error(`The signing key ${keyId} is sealed with a master key that is not known here (${id}).`)
      const sealed = Buffer.from(privateKeyEncrypted)
      const decipher = createDecipheriv(algorithm, key, sealed.subarray(0, nonceBytes), { authTagLength: tagBytes })
      decipher.setAAD(boundTo(organizationId, keyId))
      decipher.setAuthTag(sealed.subarray(sealed.length - tagBytes))
      return Buffer.concat([decipher.update(sealed.subarray(nonceBytes, sealed.length - tagBytes)), decipher.final()])
    },
  }
}
