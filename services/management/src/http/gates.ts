/** Shares the connections to Postgres, and the memory for imports and exports, among organizations. */

import { createFairGate, type FairGate } from './fair-gate.ts'

/** The numbers of connections in the pools for reads and for changes. One connection of each pool is reserved for background work. */
export const READ_CONNECTIONS = 12
export const WRITE_CONNECTIONS = 8
const WAITING = { maxWaiting: 200, maxWaitMs: 5_000 }
/**
 * The number of connections for lookups of credentials that `KnownCredentials` does not contain. One lookup takes less than a millisecond.
 */
const STRANGERS = 3

/** The gates of the connections to Postgres, of imports and of exports. */
export interface Gates {
  reads: FairGate
  /** The gate for lookups of credentials that `KnownCredentials` does not contain. */
  strangers: FairGate
  writes: FairGate
  imports: FairGate
  exports: FairGate
}

/** Creates the gates. `onReject` is called for each request that a gate rejects. */
export function createGates(onReject: () => void): Gates {
  const waiting = { ...WAITING, onReject }
  return {
    reads: createFairGate({ ...waiting, total: READ_CONNECTIONS - STRANGERS - 1, perOwner: 4, what: 'requests' }),
    strangers: createFairGate({
      ...waiting,
      total: STRANGERS,
      perOwner: STRANGERS,
      what: 'requests with new credentials',
    }),
    writes: createFairGate({ ...waiting, total: WRITE_CONNECTIONS - 1, perOwner: 3, what: 'changes' }),
    // A large import occupies memory from its first byte to its response.
    imports: createFairGate({ total: 4, perOwner: 1, maxWaiting: 8, maxWaitMs: 5_000, onReject, what: 'imports' }),
    // An export occupies the memory of one page until its caller has read everything. It uses a connection only while it reads a page.
    exports: createFairGate({
      total: 32,
      perOwner: 2,
      maxWaiting: 0,
      maxWaitMs: 0,
      onReject,
      what: 'exports',
      code: 'RATE_LIMITED',
    }),
  }
}

/** Returns the owner whose share of the connections a request uses. Apps have their own share, because their API key is public. */
export function shareOf({ kind, organizationId }: { kind: string; organizationId: string }): string {
  return `${kind} ${organizationId}`
}
