/** Adds mails to the outbox, in the transaction of their cause (docs/api.md#e1). */

import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'

import type { Db, WriteContext } from '../context.ts'
import { ApiError } from '../http/problem.ts'

/** Throws NOT_ENABLED unless the operator has set a mail server. */
export function requireMail({ mailEnabled }: { mailEnabled: boolean }): void {
  if (!mailEnabled) throw new ApiError('NOT_ENABLED', 'The operator has not set a mail server (KEYWARD_SMTP_URL).')
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
