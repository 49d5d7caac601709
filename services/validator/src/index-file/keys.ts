/**
 * Derives keys from a secret, which is stored beside the index file. One key is for the keyed hashes in the index, one encrypts the index
 * file, and one signs responses. Without the secret, a copy of the index file cannot be
 * decrypted.
 */

import { hkdfSync, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'

const SECRET_BYTES = 32
/** The permission bits of the group and of other users. A secret file with any of these bits is replaced. */
const OTHERS = 0o077

export interface IndexKeys {
  /** The key of the keyed hashes in the index, 16 bytes. */
  readonly hashKey: Uint8Array
  /** The key that encrypts the index file, 32 bytes. */
  readonly fileKey: Uint8Array
  /** The seed of the key that signs responses, 32 bytes. After a restart, the delegations of the index file are therefore valid. */
  readonly answerSeed: Uint8Array
}

/**
 * Returns the keys of an index file. Creates a new secret if the secret file is missing, damaged or accessible to other users.
 * An existing index file is then unusable. Throws when the new secret cannot be written.
 */
export function openKeys(indexFile: string): IndexKeys {
  const path = `${indexFile}.key`
  const secret = readSecret(path) ?? createSecret(path)
  const derive = (purpose: string, bytes: number): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, '', `keyward index ${purpose}`, bytes))
  return { hashKey: derive('hashes', 16), fileKey: derive('file', 32), answerSeed: derive('answers', 32) }
}

function readSecret(path: string): Buffer | null {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined || !stat.isFile() || (stat.mode & OTHERS) !== 0) return null
  const secret = readFileSync(path)
  return secret.length === SECRET_BYTES ? secret : null
}

function createSecret(path: string): Buffer {
  const secret = randomBytes(SECRET_BYTES)
  rmSync(path, { force: true })
  writeFileSync(path, secret, { flag: 'wx', mode: 0o600, flush: true })
  chmodSync(path, 0o600)
  return secret
}
