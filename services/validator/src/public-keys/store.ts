/**
 * Stores the public keys of all organizations (docs/api.md#h11), which the change feed delivers, with their delegations to this validator. Every change is passed to a
 * listener in the same turn of the event loop, so a listener that starts from `all` always has the keys of the store.
 */

import { isDeepStrictEqual } from 'node:util'

import type { SigningKeyRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { MAX_FILE_LIFETIME_MS } from '@keyward/license-file/payload'
import { publicKeyToSpki } from '@keyward/license-file/spki'
import { z } from 'zod'

/** A change of a signing key, from the change feed. `row` is null when the key was deleted. */
export interface SigningKeyChange {
  id: Uint8Array
  row: SigningKeyRow | null
}

/** The maximum length of a delegation with its signature. Management signs texts that are much shorter. */
export const MAX_DELEGATION_LENGTH = 512

/** A delegation as management stores it. */
const delegationRow = z.object({
  signed: z.string().max(MAX_DELEGATION_LENGTH),
  notBefore: z.iso.datetime(),
  notAfter: z.iso.datetime(),
})

const delegation = z.object({ signed: z.string(), fromMs: z.number(), untilMs: z.number() })

/** A delegation to this validator (docs/api.md#g2), which is valid from `fromMs` until before `untilMs`. Responses contain `signed`. */
type Delegation = z.infer<typeof delegation>

export interface PublicKey {
  /** The organization's id in hexadecimal. */
  organization: string
  keyId: string
  /** The SubjectPublicKeyInfo in Base64. */
  publicKey: string
  createdAtMs: number
  /** The time of retirement. It is Infinity for the current key and for a prepared key. */
  retiredAtMs: number
  /** Whether the key is listed but does not sign yet. */
  isPrepared: boolean
  /** The time from which the list of public keys lacks this key; `-Infinity` for a withdrawn key (docs/api.md#f5). */
  inForceUntilMs: number
  /** The delegation of the key to this validator, or null without one. */
  delegation: Delegation | null
}

/** A change of a public key. `id` is in hexadecimal. `key` is null when the key was deleted. */
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
    delegation: delegation.nullable(),
  }),
)

type StoredKey = z.infer<typeof storedKeys>[number]

/**
 * Converts a key to a form that JSON can represent. Infinity becomes null. -Infinity, the time of a withdrawn key, becomes 0,
 * which is in the past.
 */
function toStored(id: string, key: PublicKey): StoredKey {
  const { retiredAtMs, inForceUntilMs } = key
  const orNull = (ms: number): number | null => (ms === Infinity ? null : Math.max(0, ms))
  return { ...key, id, retiredAtMs: orNull(retiredAtMs), inForceUntilMs: orNull(inForceUntilMs) }
}

function fromStored({ id, ...key }: StoredKey): PublicKeyChange {
  const { retiredAtMs, inForceUntilMs } = key
  return { id, key: { ...key, retiredAtMs: retiredAtMs ?? Infinity, inForceUntilMs: inForceUntilMs ?? Infinity } }
}

/** The assumed maximum difference between the clocks of the services, Postgres and the apps. */
const CLOCK_TOLERANCE_MS = 24 * 60 * 60 * 1000

export class PublicKeyStore {
  /** Reads the delegation to this validator from the JSON of a row. */
  readonly #readDelegation: (json: string) => Delegation | null
  /** The keys by their ids in hexadecimal. */
  readonly #keys = new Map<string, PublicKey>()
  /** The ids that the reload has delivered, and the ids that have changed since the reload began. Null outside a reload. */
  #reload: { seen: Set<string>; changed: Set<string> } | null = null
  #listener: (changes: readonly PublicKeyChange[]) => void = () => undefined

  /** `answerKey` is the public key with which this validator signs responses, in base64url. */
  constructor(answerKey: string) {
    const own = z.object({ [answerKey]: delegationRow })
    this.#readDelegation = (json) => {
      const row = own.safeParse(JSON.parse(json)).data?.[answerKey]
      return row ? { signed: row.signed, fromMs: Date.parse(row.notBefore), untilMs: Date.parse(row.notAfter) } : null
    }
  }

  /** Every key, as the changes that would fill an empty store. */
  get all(): PublicKeyChange[] {
    return [...this.#keys].map(([id, key]) => ({ id, key }))
  }

  /** Returns all keys as text, for `restore`. */
  serialize(): string {
    return JSON.stringify([...this.#keys].map(([id, key]) => toStored(id, key)))
  }

  /** Fills an empty store from the result of `serialize`. */
  restore(text: string): void {
    this.#change(storedKeys.parse(JSON.parse(text)).map(fromStored))
  }

  /** Sets the listener, which receives every later change in the same turn of the event loop. */
  listen(listener: (changes: readonly PublicKeyChange[]) => void): void {
    this.#listener = listener
  }

  /**
   * Begins a reload. The caller then passes every existing key to `receive`, and `endReload` deletes the keys that are gone.
   */
  beginReload(): void {
    this.#reload = { seen: new Set(), changed: new Set() }
  }

  /**
   * Stores keys of a reload. Skips keys that `apply` has changed since the reload began, because those are newer. Returns whether a key
   * differed.
   */
  receive(changes: readonly SigningKeyChange[]): boolean {
    const { seen, changed } = this.#reload ?? { seen: new Set(), changed: new Set() }
    const rows = changes.filter(({ row }) => row !== null)
    for (const { id } of rows) seen.add(toHex(id))
    return this.#change(rows.filter(({ id }) => !changed.has(toHex(id))).map((change) => this.#toChange(change)))
  }

  /** Ends a reload. Returns whether keys were deleted. */
  endReload(): boolean {
    const reload = this.#reload
    this.#reload = null
    if (reload === null) return false
    const gone = [...this.#keys.keys()].filter((id) => !reload.seen.has(id) && !reload.changed.has(id))
    return this.#change(gone.map((id) => ({ id, key: null })))
  }

  /** Ends a reload without deleting keys. */
  abandonReload(): void {
    this.#reload = null
  }

  apply(changes: readonly SigningKeyChange[]): void {
    for (const { id } of changes) this.#reload?.changed.add(toHex(id))
    this.#change(changes.map((change) => this.#toChange(change)))
  }

  #toChange({ id, row }: SigningKeyChange): PublicKeyChange {
    return { id: toHex(id), key: row && { ...toPublicKey(row), delegation: this.#readDelegation(row.delegations) } }
  }

  /** Applies changes. Returns whether a key differed from its change. */
  #change(changes: readonly PublicKeyChange[]): boolean {
    const different = changes.filter(({ id, key }) => !isDeepStrictEqual(this.#keys.get(id) ?? null, key))
    for (const { id, key } of different) {
      if (key === null) this.#keys.delete(id)
      else this.#keys.set(id, key)
    }
    if (different.length > 0) this.#listener(different)
    return different.length > 0
  }
}

function toPublicKey(row: SigningKeyRow): Omit<PublicKey, 'delegation'> {
  const { keyId, createdAtMs, withdrawnAtMs } = row
  const isPrepared = row.preparedAtMs !== Infinity
  // In the database, a prepared key has a time of retirement, so that it is not the current key.
  const retiredAtMs = isPrepared ? Infinity : row.retiredAtMs
  // A withdrawn key is out of force at once. A retired key is out of force when its last file has expired on every clock.
  const inForceUntilMs =
    withdrawnAtMs === Infinity ? retiredAtMs + MAX_FILE_LIFETIME_MS + CLOCK_TOLERANCE_MS : -Infinity
  const publicKey = publicKeyToSpki(row.publicKey)
  const organization = toHex(row.organizationId)
  return { organization, keyId, publicKey, createdAtMs, retiredAtMs, isPrepared, inForceUntilMs }
}
