/**
 * Caches the owners of credentials that were valid at their last use. The owner suffices to count a request and to assign its share of the
 * connections before Postgres is read. The cache never authenticates, because every request reads its credential.
 */

import type { LimitedCaller } from './rate-limit.ts'

const MAX_KNOWN = 10_000

export interface KnownCredentials {
  /** Returns the owner of the credential whose secret has this hash. */
  get(hash: Uint8Array): LimitedCaller | undefined
  add(hash: Uint8Array, caller: LimitedCaller): void
  delete(hash: Uint8Array): void
}

/** Returns the hash of a secret as the key of a map. */
export function keyOf(hash: Uint8Array): string {
  return Buffer.from(hash).toString('latin1')
}

export function createKnownCredentials(): KnownCredentials {
  const known = new Map<string, LimitedCaller>()
  return {
    get(hash) {
      const key = keyOf(hash)
      const caller = known.get(key)
      if (!caller) return undefined
      // Moves the entry to the end, because entries are evicted from the beginning.
      known.delete(key)
      known.set(key, caller)
      return caller
    },
    add(hash, { kind, owner, organizationId }) {
      const [oldest] = known.keys()
      if (known.size >= MAX_KNOWN && oldest !== undefined) known.delete(oldest)
      known.set(keyOf(hash), { kind, owner, organizationId })
    },
    delete: (hash) => void known.delete(keyOf(hash)),
  }
}
