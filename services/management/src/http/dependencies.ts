/** The dependencies of the endpoints: created once at start and passed to every handler. */

import type { OriginResolver } from '@keyward/address'
import type { DecideRequest, DecideResponse } from '@keyward/contract/internal'
import type { Logger } from '@keyward/process'

import type { Keyring } from '../keyring/keyring.ts'
import type { Db, ReadContext } from './context.ts'
import type { Gates } from './gates.ts'
import type { StoredBytes } from './idempotency.ts'
import type { Propagation } from './propagation.ts'

/** A check to decide. The organization comes from the context. */
export type CheckToDecide = Omit<DecideRequest, 'organizationId' | 'snapshot'>

export interface DecidingValidators {
  /** Returns the verdict at this moment, which considers everything committed before. Throws UNAVAILABLE. */
  decide(context: ReadContext, check: CheckToDecide): Promise<DecideResponse>
}

export interface Dependencies {
  /** For changes. */
  db: Db
  /** For reads: with a connection pool of its own and a shorter timeout of statements. */
  readDb: Db
  gates: Gates
  propagation: Propagation
  storedBytes: StoredBytes
  resolver: OriginResolver
  keyring: Keyring
  /** The current operator token, and the previous one while it is being replaced. */
  operatorTokens: readonly string[]
  validators: DecidingValidators
  log: Logger
}
