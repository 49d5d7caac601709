/**
 * The organizations' public keys (API document, "Public key"), as the change log tells them. Every change of them is handed on,
 * so that who follows from all there are has the same keys after each.
 */

import type { SigningKeyRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { FILE_LIFETIME_MS } from '@keyward/license-file/payload'
import { publicKeyToSpki } from '@keyward/license-file/spki'

/** A row of the change log; null: it was deleted. */
export interface SigningKeyChange {
  id: Uint8Array
  row: SigningKeyRow | null
}

export interface PublicKey {
  /** Its id in hex. */
  organization: string
  keyId: string
  /** Base64 of the SubjectPublicKeyInfo. */
  publicKey: string
  createdAtMs: number
  /** Infinity: it is the current one. */
  retiredAtMs: number
  /** From here on no file that it signed is to be trusted. */
  inForceUntilMs: number
}

/** `id` in hex; null: the key is gone. */
export interface KeyChange {
  id: string
  key: PublicKey | null
}

/** How far the clocks of services, Postgres and apps may be apart. */
const CLOCKS_MS = 24 * 60 * 60 * 1000

export class KeyRing {
  readonly #keys = new Map<string, PublicKey>()
  #seen: Set<string> | null = null
  #follower: (changes: readonly KeyChange[]) => void = () => undefined

  /** All there are, as changes from none. */
  get all(): KeyChange[] {
    return [...this.#keys].map(([id, key]) => ({ id, key }))
  }

  /** From now on every change goes there as well, in the turn that makes it. */
  follow(follower: (changes: readonly KeyChange[]) => void): void {
    this.#follower = follower
  }

  /** Between begin and end of a reload every key that is there comes once; what did not come is gone. */
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
    this.#change(
      changes.map(({ id, row }) => {
        if (row === null) return { id: toHex(id), key: null }
        const { keyId, createdAtMs, retiredAtMs, withdrawnAtMs } = row
        const publicKey = publicKeyToSpki(row.publicKey)
        const organization = toHex(row.organizationId)
        // A withdrawn key is told no more, an older one until its last file has run out by any clock.
        const inForceUntilMs = withdrawnAtMs === Infinity ? retiredAtMs + FILE_LIFETIME_MS + CLOCKS_MS : -Infinity
        return { id: toHex(id), key: { organization, keyId, publicKey, createdAtMs, retiredAtMs, inForceUntilMs } }
      }),
    )
  }

  #change(changes: readonly KeyChange[]): void {
    if (changes.length === 0) return
    for (const { id, key } of changes) {
      if (key === null) this.#keys.delete(id)
      else this.#keys.set(id, key)
    }
    this.#follower(changes)
  }
}
