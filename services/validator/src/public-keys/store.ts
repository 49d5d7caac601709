/**
 * The public keys of all organizations (docs/api.md#h11), as the change feed delivers them. Every change is passed to a
 * listener in the same turn, so a listener that starts from `all` always has the same keys.
 */

import type { SigningKeyRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { FILE_LIFETIME_MS } from '@keyward/license-file/payload'
import { publicKeyToSpki } from '@keyward/license-file/spki'

/** A row of the change feed. `row` is null when it was deleted. */
export interface SigningKeyChange {
  id: Uint8Array
  row: SigningKeyRow | null
}

export interface PublicKey {
  /** The organization's id in hex. */
  organization: string
  keyId: string
  /** Base64 of the SubjectPublicKeyInfo. */
  publicKey: string
  createdAtMs: number
  /** Infinity for the current key and for a prepared one. */
  retiredAtMs: number
  /** It is listed before it signs. */
  isPrepared: boolean
  /** From this time on no file with its signature is valid (docs/api.md#f5). */
  inForceUntilMs: number
}

/** `id` is in hex. `key` is null when the key was deleted. */
export interface PublicKeyChange {
  id: string
  key: PublicKey | null
}

/** How far the clocks of the services, Postgres and the apps may differ. */
const CLOCK_TOLERANCE_MS = 24 * 60 * 60 * 1000

export class PublicKeyStore {
  /** By the key's id in hex. */
  readonly #keys = new Map<string, PublicKey>()
  /** The ids that the reload in progress has delivered. Null outside of reloads. */
  #seen: Set<string> | null = null
  #listener: (changes: readonly PublicKeyChange[]) => void = () => undefined

  /** Every key, as changes of an empty store. */
  get all(): PublicKeyChange[] {
    return [...this.#keys].map(([id, key]) => ({ id, key }))
  }

  /** Passes every later change to the listener, in the turn that makes it. */
  listen(listener: (changes: readonly PublicKeyChange[]) => void): void {
    this.#listener = listener
  }

  /** Begins a reload: `apply` then delivers every existing key, and `endReload` deletes the others. */
  beginReload(): void {
    this.#seen = new Set()
  }

  endReload(): void {
    const seen = this.#seen
    this.#seen = null
    if (seen) this.#change([...this.#keys.keys()].filter((id) => !seen.has(id)).map((id) => ({ id, key: null })))
  }

  apply(changes: readonly SigningKeyChange[]): void {
    for (const { id, row } of changes) if (row !== null) this.#seen?.add(toHex(id))
    this.#change(changes.map(({ id, row }) => ({ id: toHex(id), key: row === null ? null : toPublicKey(row) })))
  }

  #change(changes: readonly PublicKeyChange[]): void {
    if (changes.length === 0) return
    for (const { id, key } of changes) {
      if (key === null) this.#keys.delete(id)
      else this.#keys.set(id, key)
    }
    this.#listener(changes)
  }
}

function toPublicKey(row: SigningKeyRow): PublicKey {
  const { keyId, createdAtMs, withdrawnAtMs } = row
  const isPrepared = row.preparedAtMs !== Infinity
  // A prepared key has a time of retirement in the database, so that it is not the current one.
  const retiredAtMs = isPrepared ? Infinity : row.retiredAtMs
  // A withdrawn key is out of force at once; a retired one when its last file has expired by any clock.
  const inForceUntilMs = withdrawnAtMs === Infinity ? retiredAtMs + FILE_LIFETIME_MS + CLOCK_TOLERANCE_MS : -Infinity
  const publicKey = publicKeyToSpki(row.publicKey)
  const organization = toHex(row.organizationId)
  return { organization, keyId, publicKey, createdAtMs, retiredAtMs, isPrepared, inForceUntilMs }
}
