/**
 * The credentials that were valid at their last use. It is used to sort requests before Postgres is read: to count them by their owner and
 * to give them their owner's share of the connections. It never authenticates: a credential is read at each request.
 */

import type { LimitedCaller } from './rate-limit.ts'

const MAX_KNOWN = 10_000

export interface KnownCredentials {
  /** Returns the owner of a credential. `hash`: the hash of its secret. */
  get(hash: Uint8Array): LimitedCaller | undefined
  add(hash: Uint8Array, caller: LimitedCaller): void
  delete(hash: Uint8Array): void
}

export function createKnownCredentials(): KnownCredentials {
  const known = new Map<string, LimitedCaller>()
  const keyOf = (hash: Uint8Array) => Buffer.from(hash).toString('latin1')
  return {
    get(hash) {
      const key = keyOf(hash)
      const caller = known.get(key)
      if (!caller) return undefined
      // Moves it to the end: the beginning is forgotten first.
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
