import type { Generated } from 'kysely'

import type { Bytes, DefaultMoment, Moment } from './columns.ts'

/** Links of the portal and the sessions that they open. */
export interface PortalSessionTable {
  id: string
  organizationId: string
  customerId: string
  /** The hash of the code of the link until it is opened, and of the secret of the session afterwards. */
  secretHash: Bytes
  actions: string[]
  isPreview: boolean
  returnUrl: string | null
  /** The number of changes that the session has made. */
  acts: Generated<number>
  createdAt: DefaultMoment
  openedAt: Moment | null
  expiresAt: Moment
}
