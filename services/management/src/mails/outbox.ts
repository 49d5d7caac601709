/** Adds mails to the outbox, in the transaction of their cause (docs/api.md#e1). */

import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'

import type { Db, WriteContext } from '../context.ts'
import { firstIdAt } from '../http/pagination.ts'
import { ApiError } from '../http/problem.ts'

const DAY_MS = 86_400_000
/** The maximum number of links that the customers of one organization receive in 24 hours, so that they do not use up its mails. */
const MAX_LINKS_PER_DAY = 250

/** Throws NOT_ENABLED unless the operator has set a mail server. */
export function requireMail({ mailEnabled }: { mailEnabled: boolean }): void {
  if (!mailEnabled) throw new ApiError('NOT_ENABLED', 'The operator has not set a mail server (KEYWARD_SMTP_URL).')
}

/** Throws NOT_ENABLED unless the operator has set the address of the portal. */
export function requirePortalMail({ portalMailEnabled }: { portalMailEnabled: boolean }): void {
  if (!portalMailEnabled)
    throw new ApiError('NOT_ENABLED', 'The operator has not set the address of the portal (KEYWARD_MAIL_PORTAL_URL).')
}

/**
 * Adds a mail with a link to the portal, if the vendor has switched them on. The customer is looked up when the mail is sent, so the
 * request takes the same time whether a customer has the address or not.
 */
export async function addLinkMail(db: Db, organizationId: string, email: string): Promise<void> {
  await sql`
    insert into mails (id, organization_id, template, recipient, license_ids)
    select ${uuidv7()}, o.id, 'portal', ${email}, '{}' from organizations o
    where o.id = ${organizationId} and o.mail_portal and o.suspended_at is null and (
      select count(*) from mails m
      where m.organization_id = o.id and m.id >= ${firstIdAt(Date.now() - DAY_MS)} and m.template = 'portal') < ${MAX_LINKS_PER_DAY}`.execute(
    db,
  )
}

/** Adds the mail with the keys of an order, if the organization has switched it on. */
export async function addKeyMail(
  { db, organizationId }: WriteContext,
  customerId: string,
  licenseIds: readonly string[],
): Promise<void> {
  await sql`
    insert into mails (id, organization_id, template, customer_id, recipient, license_ids)
    select ${uuidv7()}, o.id, 'key', c.id, c.email, ${licenseIds}
    from organizations o join customers c on c.organization_id = o.id
    where o.id = ${organizationId} and o.mail_keys and c.id = ${customerId}`.execute(db)
}

/** Adds the mails about licenses that end in `days` days, if their organizations have switched them on. */
export async function addEndingMails(db: Db, days: number, licenseIds: readonly string[]): Promise<void> {
  await sql`
    insert into mails (id, organization_id, template, customer_id, recipient, license_ids, ends_at)
    select new_id(), o.id, 'ending', c.id, c.email, array[l.id], l.expires_at
    from licenses l join organizations o on o.id = l.organization_id join customers c on c.id = l.customer_id
    where l.id = any(${licenseIds}::uuid[]) and l.status = 'active' and o.mail_ending_days = ${days}`.execute(db)
}

/** Removes a customer from its mails before the customer is deleted, and ends the mails that wait. */
export async function forgetCustomer({ db, organizationId }: WriteContext, customerId: string): Promise<void> {
  await sql`
    update mails
    set customer_id = null, recipient = null, license_ids = '{}', worker = null, next_attempt_at = null,
      status = case when status = 'PENDING' then 'FAILED' else status end,
      error = case when status = 'PENDING' then 'The customer has been deleted.' else error end
    where organization_id = ${organizationId} and customer_id = ${customerId}`.execute(db)
}
