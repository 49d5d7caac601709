/**
 * Creates links of the portal, and opens and ends its sessions (docs/api.md#u3). A customer has at most 20 links and sessions. A new link
 * beyond this limit ends the oldest. The foreign key ends those of a deleted or merged customer.
 */

import type { PortalAction, PortalLink, PortalSession } from '@keyward/contract/management/portal'
import { createSecret, hashSecret, parseSecret, uuidv7 } from '@keyward/database'
import { sql } from 'kysely'

import { unauthenticated } from '../../admission/authentication.ts'
import { audit } from '../../audit/writer.ts'
import type { Db, ReadContext, WriteContext } from '../../context.ts'
import { customerRows } from '../../crud/customer-rows.ts'
import { findRow, missingIds } from '../../crud/owned-rows.ts'
import { invalid } from '../../http/problem.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'

const LINK_MINUTES = 15
const SESSION_HOURS = 24
const MS_PER_MINUTE = 60_000
const MAX_OF_CUSTOMER = 20
const ENDED = { action: 'portal.ended', resourceType: 'customer' } as const

interface NewLink {
  customerId: string
  actions: readonly PortalAction[]
  returnUrl?: string | undefined
  /** Whether the session changes nothing. */
  preview?: boolean | undefined
  /** The scheme and host of the link. */
  origin: string
  /**
   * Whether the link is sent by mail. The page opens it only after a click, because the programs that check mails run scripts. Its address
   * names the organization, so that the page offers another link.
   */
  isMailed?: boolean
}

/** Creates a link that opens the portal once. Throws INVALID_REQUEST and QUOTA_EXCEEDED. */
export async function createPortalSession(context: WriteContext, link: NewLink): Promise<PortalLink & { url: string }> {
  const { db, organizationId } = context
  const { customerId, actions, returnUrl = null, preview = false, origin, isMailed = false } = link
  if ((await missingIds('customers', context, [customerId])).size > 0)
    throw invalid('#/customerId', 'must be the id of a customer of this organization')
  await requireWithinQuota(context, 'portalSessions')
  const { secret, hash } = createSecret('PORTAL_LINK')
  const expiresAt = new Date(Date.now() + LINK_MINUTES * MS_PER_MINUTE)
  await db
    .insertInto('portalSessions')
    .values({
      id: uuidv7(),
      organizationId,
      customerId,
      secretHash: hash,
      actions: [...actions],
      isPreview: preview,
      returnUrl,
      expiresAt,
    })
    .execute()
  const excess = db
    .selectFrom('portalSessions')
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('customerId', '=', customerId)
    .orderBy(sql`expires_at > now()`, 'desc')
    .orderBy('createdAt', 'desc')
    .orderBy('id', 'desc')
    .offset(MAX_OF_CUSTOMER)
  const { numDeletedRows } = await db
    .deleteFrom('portalSessions')
    .where('organizationId', '=', organizationId)
    .where('id', 'in', excess)
    .executeTakeFirstOrThrow()
  if (numDeletedRows > 0n)
    await audit(context, { ...ENDED, resourceId: customerId, changes: { excess: Number(numDeletedRows) } })
  const changes = { actions, preview, expiresAt: expiresAt.toISOString() }
  await audit(context, { action: 'portal.linked', resourceType: 'customer', resourceId: customerId, changes })
  // The code is in the fragment, which browsers never send to a server.
  const url = `${origin}/portal${isMailed ? `?organization=${organizationId}#confirm.` : '#'}${secret}`
  return { url, expiresAt: expiresAt.toISOString() }
}

/** Opens the session of a link, which works once. Throws UNAUTHENTICATED. */
export async function openPortalSession(db: Db, code: string): Promise<{ secret: string; session: PortalSession }> {
  const rejected = unauthenticated('The link was used or has expired. Ask for a new one.')
  if (parseSecret(code)?.kind !== 'PORTAL_LINK') throw rejected
  const { secret, hash } = createSecret('PORTAL_SESSION')
  const opened = await db
    .updateTable('portalSessions')
    .set({
      secretHash: hash,
      openedAt: sql<Date>`now()`,
      expiresAt: sql<Date>`now() + ${SESSION_HOURS} * interval '1 hour'`,
    })
    .where('secretHash', '=', Buffer.from(hashSecret(code)))
    .where('openedAt', 'is', null)
    .where('expiresAt', '>', sql<Date>`now()`)
    .where('organizationId', 'in', (organizations) =>
      organizations.selectFrom('organizations').select('id').where('suspendedAt', 'is', null),
    )
    .returning(['id', 'organizationId', 'customerId', 'isPreview'])
    .executeTakeFirst()
  if (!opened) throw rejected
  const { id, organizationId, customerId, isPreview } = opened
  const context = { db, organizationId, actor: { type: 'CUSTOMER', id: customerId } } as const
  // A member opens a preview, and the entry of its link names the member.
  if (!isPreview) await audit(context, { action: 'portal.opened', resourceType: 'customer', resourceId: customerId })
  return { secret, session: await readPortalSession(context, id) }
}

export async function readPortalSession({ db, organizationId }: ReadContext, id: string): Promise<PortalSession> {
  const row = await db
    .selectFrom('portalSessions')
    .innerJoin('organizations', 'organizations.id', 'portalSessions.organizationId')
    .innerJoin('customers', 'customers.id', 'portalSessions.customerId')
    .select(['organizations.name', 'organizations.accentColor', 'customers.email'])
    .select(['portalSessions.actions', 'portalSessions.isPreview', 'returnUrl', 'expiresAt'])
    .where('portalSessions.organizationId', '=', organizationId)
    .where('portalSessions.id', '=', id)
    .executeTakeFirst()
  if (!row) throw unauthenticated('The session has ended. Open a new link.')
  const { name, accentColor, email, actions, isPreview, returnUrl, expiresAt } = row
  return {
    vendor: { name, accentColor },
    email,
    actions: (['release', 'files'] as const).filter((action) => actions.includes(action)),
    preview: isPreview,
    returnUrl,
    expiresAt: expiresAt.toISOString(),
  }
}

/** Ends all links and sessions of a customer. Throws NOT_FOUND. */
export async function endPortalSessions(context: WriteContext, customerId: string): Promise<void> {
  await findRow(customerRows, context, customerId)
  const { numDeletedRows } = await context.db
    .deleteFrom('portalSessions')
    .where('organizationId', '=', context.organizationId)
    .where('customerId', '=', customerId)
    .executeTakeFirstOrThrow()
  if (numDeletedRows > 0n) await audit(context, { ...ENDED, resourceId: customerId })
}
