/** The database handle of a request, and the context that every write carries. */

import type { Actor } from '@keyward/contract'
import type { Database } from '@keyward/database'
import type { Kysely } from 'kysely'

/** The pool, or a transaction on it. */
export type Db = Kysely<Database>

/** The context of a read: the database and the organization whose rows may be read. */
export interface ReadContext {
  db: Db
  organizationId: string
}

/** The credential that a request was sent with, as far as it bounds the credentials that the request makes. */
export interface CallerCredential {
  id: string
  /** Null: never. */
  expiresAt: Date | null
  /** The product that an API key is bound to. Null: none. */
  productId: string | null
  /** The member from whose access token it descends, directly or through other credentials. Null: none. */
  madeByMember: string | null
}

/** The context of a write: the transaction, the organization whose rows may change, and who changes them. */
export interface WriteContext extends ReadContext {
  actor: Actor
}
