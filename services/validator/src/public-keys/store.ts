/**
 * The public keys of all organizations (docs/api.md#h11), as the change feed delivers them. Every change is passed to a
 * listener in the same turn, so a listener that starts from `all` always has the same keys.
 */

import type { SigningKeyRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { FILE_LIFETIME_MS } from '@keyward/license-file/payload'
import { publicKeyToSpki } from '@keyward/license-file/spki'
import { z } from 'zod'

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

const storedKeys = z.array(
  z.object({
    id: z.string(),
    organization: z.string(),
    keyId: z.string(),
    publicKey: z.string(),
    isPrepared: z.boolean(),
    createdAtMs: z.number(),
    retiredAtMs: z.number().nullable(),
    inForceUntilMs: z.number().nullable(),
  }),
)

type StoredKey = z.infer<typeof storedKeys>[number]

/** Infinity is stored as null, and -Infinity, of a withdrawn key, as 0, which is long ago. */
function toStored(id: string, key: PublicKey): StoredKey {
  const { retiredAtMs, inForceUntilMs } = key
  const orNull = (ms: number): number | null => (ms === Infinity ? null : Math.max(0, ms))
  return { ...key, id, retiredAtMs: orNull(retiredAtMs), inForceUntilMs: orNull(inForceUntilMs) }
}

function fromStored({ id, ...key }: StoredKey): PublicKeyChange {
  const { retiredAtMs, inForceUntilMs } = key
  return { id, key: { ...key, retiredAtMs: retiredAtMs ?? Infinity, inForceUntilMs: inForceUntilMs ?? Infinity } }
}

/** How far the clocks of the services, Postgres and the apps may differ. */
const CLOCK_TOLERANCE_MS = 24 * 60 * 60 * 1000

export class PublicKeyStore {
  /** By the key's id in hex. */
  readonly #keys = new Map<string, PublicKey>()
  /** The ids that the reload in progress has delivered, and those that were changed since it began. Null outside of reloads. */
  #reload: { seen: Set<string>; changed: Set<string> } | null = null
  #listener: (changes: readonly PublicKeyChange[]) => void = () => undefined

  /** Every key, as changes of an empty store. */
  get all(): PublicKeyChange[] {
    return [...this.#keys].map(([id, key]) => ({ id, key }))
  }

  /** Returns all keys as text, for `restore`. */
  serialize(): string {
    return JSON.stringify([...this.#keys].map(([id, key]) => toStored(id, key)))
  }

  /** Fills an empty store with what `serialize` has returned. */
  restore(text: string): void {
    this.#change(storedKeys.parse(JSON.parse(text)).map(fromStored))
  }

  /** Passes every later change to the listener, in the turn that makes it. */
  listen(listener: (changes: readonly PublicKeyChange[]) => void): void {
    this.#listener = listener
  }

  /** Begins a reload: `receive` then delivers every existing key, and `endReload` deletes the others. */
  beginReload(): void {
    this.#reload = { seen: new Set(), changed: new Set() }
  }

  /** Takes keys of a reload. What `apply` has changed since the reload began is newer. */
  receive(changes: readonly SigningKeyChange[]): void {
    const { seen, changed } = this.#reload ?? { seen: new Set(), changed: new Set() }
    const rows = changes.filter(({ row }) => row !== null)
    for (const { id } of rows) seen.add(toHex(id))
    this.#change(rows.filter(({ id }) => !changed.has(toHex(id))).map(toChange))
  }

  endReload(): void {
    const reload = this.#reload
    this.#reload = null
    if (reload === null) return
    const gone = [...this.#keys.keys()].filter((id) => !reload.seen.has(id) && !reload.changed.has(id))
    this.#change(gone.map((id) => ({ id, key: null })))
  }

  /** Ends a reload without deleting keys. */
  abandonReload(): void {
    this.#reload = null
  }

  apply(changes: readonly SigningKeyChange[]): void {
    for (const { id } of changes) this.#reload?.changed.add(toHex(id))
    this.#change(changes.map(toChange))
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

function toChange({ id, row }: SigningKeyChange): PublicKeyChange {
  return { id: toHex(id), key: row === null ? null : toPublicKey(row) }
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
