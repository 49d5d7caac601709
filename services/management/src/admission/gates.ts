/** Shares the connections to Postgres, and the memory for imports and exports, among organizations. */

import { ByteBudget } from './byte-budget.ts'
import { createFairGate, type FairGate } from './fair-gate.ts'

/** The numbers of connections in the pools for reads and for changes. One connection of each pool is reserved for background work. */
export const READ_CONNECTIONS = 12
export const WRITE_CONNECTIONS = 8
const WAITING = { maxWaiting: 200, maxWaitMs: 5_000 }
/**
 * The number of connections for lookups of credentials that `KnownCredentials` does not contain. One lookup takes less than a millisecond.
 */
const STRANGERS = 3
/** The maximum number of imports that are parsed and written at once. */
const IMPORTS = 4
/** The maximum number of bytes that the bodies of imports occupy. It is enough for IMPORTS bodies of the largest size. */
const IMPORT_BYTES = IMPORTS * 50 * 1024 * 1024

/** The maximum number of bytes that the bodies of signed requests occupy. */
const SIGNED_BYTES = 32 * 1024 * 1024

/** The limits of the connections to Postgres, of imports and of exports. */
export interface Gates {
  reads: FairGate
  /** The gate for lookups of credentials that `KnownCredentials` does not contain. */
  strangers: FairGate
  writes: FairGate
  /** The gate for receiving imports. It lets every organization send one body at a time, so a slow body delays its own organization only. */
  uploads: FairGate
  /** The memory for the bodies of imports. */
  importBytes: ByteBudget
  /** The memory for the bodies of signed requests, whose senders are not known before the body has arrived. */
  signedBytes: ByteBudget
  /** The gate for imports whose body has been received. */
  imports: FairGate
  exports: FairGate
}

/** Creates the gates. `onReject` is called for each request that a gate rejects. */
export function createGates(onReject: () => void): Gates {
  const waiting = { ...WAITING, onReject }
  const imports = { ...waiting, what: 'imports' }
  return {
    reads: createFairGate({ ...waiting, total: READ_CONNECTIONS - STRANGERS - 1, perOwner: 4, what: 'requests' }),
    strangers: createFairGate({
      ...waiting,
      total: STRANGERS,
      perOwner: STRANGERS,
      what: 'requests with new credentials',
    }),
    writes: createFairGate({ ...waiting, total: WRITE_CONNECTIONS - 1, perOwner: 3, what: 'changes' }),
    uploads: createFairGate({ ...imports, total: Infinity, perOwner: 1, maxWaiting: 8 }),
    importBytes: new ByteBudget(IMPORT_BYTES, 'imports', onReject),
    signedBytes: new ByteBudget(SIGNED_BYTES, 'events of shops', onReject),
    imports: createFairGate({ ...imports, total: IMPORTS, perOwner: 1, maxWaiting: 1 }),
    // An export occupies the memory of one page until its caller has read everything, or for 15 minutes. It uses a connection only while it
    // reads a page.
    exports: createFairGate({
      total: 128,
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
