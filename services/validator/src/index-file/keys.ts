/**
 * The secret of the index file, in a file beside it. The keys that are derived from it are those of the hashes in the index and
 * of the encryption of the file, so the index file alone is worth nothing to whoever copies it.
 */

import { hkdfSync, randomBytes } from 'node:crypto'
import { chmodSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'

const SECRET_BYTES = 32
/** Nobody but the owner may read the secret. */
const OTHERS = 0o077

export interface IndexKeys {
  /** The key of the hashes in the index: 16 bytes. */
  readonly hashKey: Uint8Array
  /** The key of the encryption: 32 bytes. */
  readonly fileKey: Uint8Array
}

/**
 * Reads the secret of an index file, or creates another one if it is missing, damaged, or readable by others; the index
 * file is then worthless. Throws when the folder is not writable.
 */
export function openKeys(indexFile: string): IndexKeys {
  const path = `${indexFile}.key`
  const secret = readSecret(path) ?? createSecret(path)
  const derive = (purpose: string, bytes: number): Uint8Array =>
    new Uint8Array(hkdfSync('sha256', secret, '', `keyward index ${purpose}`, bytes))
  return { hashKey: derive('hashes', 16), fileKey: derive('file', 32) }
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
