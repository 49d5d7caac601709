/**
 * The organizations' public keys (API document, "Public key"), kept as ready bodies. A key that was withdrawn is not among
 * them: files that it signed are no longer trusted.
 */

import type { SigningKeyRow } from '@keyward/database'
import { toHex } from '@keyward/database/ids'
import { publicKeyToSpki } from '@keyward/license-file'

import type { KeysOutcome } from '../link/messages.ts'
import type { SigningKeyChange } from './convert.ts'

const NO_KEYS: KeysOutcome = { current: null, all: Buffer.from('{"keys":[]}') }

export class KeyRing {
  readonly #keys = new Map<string, SigningKeyRow>()
  readonly #organizations = new Map<string, Set<string>>()
  readonly #bodies = new Map<string, KeysOutcome>()
  #seen: Set<string> | null = null

  /** Between begin and end of a reload every key that is there comes once; what did not come is gone. */
  beginReload(): void {
    this.#seen = new Set()
  }

  endReload(): void {
    const seen = this.#seen
    this.#seen = null
    if (seen) for (const id of this.#keys.keys()) if (!seen.has(id)) this.#remove(id)
  }

  apply(changes: readonly SigningKeyChange[]): void {
    for (const { id, row } of changes) {
      const key = toHex(id)
      this.#remove(key)
      if (row === null) continue
      this.#seen?.add(key)
      const organization = toHex(row.organizationId)
      this.#keys.set(key, row)
      const keys = this.#organizations.get(organization) ?? new Set()
      this.#organizations.set(organization, keys.add(key))
      this.#bodies.delete(organization)
    }
  }

  bodies(organizationId: Uint8Array): KeysOutcome {
    const organization = toHex(organizationId)
    const known = this.#bodies.get(organization)
    if (known) return known
    const ids = this.#organizations.get(organization)
    if (!ids) return NO_KEYS
    const rows = [...ids].flatMap((id) => this.#keys.get(id) ?? [])
    const bodies = makeBodies(rows.filter((row) => row.withdrawnAtMs === Infinity))
    this.#bodies.set(organization, bodies)
    return bodies
  }

  #remove(id: string): void {
    const row = this.#keys.get(id)
    if (!row) return
    const organization = toHex(row.organizationId)
    this.#keys.delete(id)
    this.#bodies.delete(organization)
    const keys = this.#organizations.get(organization)
    keys?.delete(id)
    if (keys?.size === 0) this.#organizations.delete(organization)
  }
}

function makeBodies(rows: readonly SigningKeyRow[]): KeysOutcome {
  const newestFirst = [...rows].toSorted((a, b) => b.createdAtMs - a.createdAtMs)
  const current = newestFirst.find((row) => row.retiredAtMs === Infinity)
  const keys = newestFirst.map((row) => {
    const createdAt = new Date(row.createdAtMs).toISOString()
    const retiredAt = row.retiredAtMs === Infinity ? null : new Date(row.retiredAtMs).toISOString()
    return Object.assign(describe(row), { createdAt, retiredAt })
  })
  return {
    current: current ? Buffer.from(JSON.stringify(describe(current))) : null,
    all: Buffer.from(JSON.stringify({ keys })),
  }
}

function describe(row: SigningKeyRow): { keyId: string; algorithm: string; publicKey: string } {
  return { keyId: row.keyId, algorithm: 'Ed25519', publicKey: publicKeyToSpki(row.publicKey) }
}
