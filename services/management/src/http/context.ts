/** The database handle of a request, and the contexts of reads and writes. */

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

/** The fields of a request's credential that limit the credentials which the request may create. */
export interface CallerCredential {
  id: string
  /** Null when the credential never expires. */
  expiresAt: Date | null
  /** The product that an API key is bound to. Null when there is none. */
  productId: string | null
  /** The member whose access token created the credential, directly or through other credentials. Null when there is none. */
  madeByMember: string | null
}

/** The context of a write: the transaction, the organization whose rows may change, and the actor. */
export interface WriteContext extends ReadContext {
  actor: Actor
}
