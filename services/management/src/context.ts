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
  /** The expiry of the credential, or null when it never expires. */
  expiresAt: Date | null
  /** The id of the product that an API key is bound to, or null. */
  productId: string | null
  /** The id of the member whose access token created the credential, directly or through other credentials, or null. */
  madeByMember: string | null
}

/** The session of a customer in the portal (docs/api.md#u4). */
export interface PortalAccess {
  sessionId: string
  customerId: string
  actions: readonly string[]
  /** Whether the session changes nothing. */
  isPreview: boolean
}

/** The context of a write: the transaction, the organization whose rows may change, and the actor. */
export interface WriteContext extends ReadContext {
  actor: Actor
}
