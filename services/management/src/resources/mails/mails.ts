/** Defines the endpoints of mails to customers (docs/api.md#e1). */

import { type Mail, mails as operations } from '@keyward/contract/management/mails'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { customerRows } from '../../crud/customer-rows.ts'
import {
  findRow,
  insertRow,
  listRows,
  lockRow,
  missingIds,
  type OwnedRows,
  readRow,
  updateRow,
} from '../../crud/owned-rows.ts'
import { timeOfEvent } from '../../events/body.ts'
import { firstIdAt } from '../../http/pagination.ts'
import { ApiError, invalid } from '../../http/problem.ts'
import { requireMail } from '../../mails/outbox.ts'
import { implement } from '../../operations/implement.ts'
import { licenseRows } from '../licenses/store.ts'

const DAY_MS = 86_400_000
const MAX_OF_CUSTOMER_PER_DAY = 5
const RETRY_AFTER_MS = 60_000

const rows: OwnedRows<'mails', Mail> = {
  table: 'mails',
  type: 'mail',
  show: ({ id, template, customerId, recipient, licenseIds, status, attempts, error, attemptedAt, nextAttemptAt }) => ({
    id,
    template,
    customerId,
    recipient,
    licenseIds,
    status,
    attempts,
    error,
    attemptedAt: attemptedAt?.toISOString() ?? null,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    createdAt: timeOfEvent(id),
  }),
}

function tooMany(detail: string, seconds: number): ApiError {
  return new ApiError('RATE_LIMITED', detail, { headers: { 'retry-after': String(seconds) } })
}

/** Adds a mail with the key of a license. The lock on the customer makes the count of its mails exact. */
async function addMail(context: WriteContext, licenseId: string): Promise<Mail> {
  if ((await missingIds('licenses', context, [licenseId])).size > 0)
    throw invalid('#/licenseId', 'must be the id of a license of this organization')
  const license = await findRow(licenseRows, context, licenseId)
  const customer = await lockRow(customerRows, context, license.customerId)
  const since = firstIdAt(Date.now() - DAY_MS)
  const counted = await sql<{ count: number }>`
    select count(*)::integer as count from mails where customer_id = ${customer.id} and id >= ${since}`.execute(
    context.db,
  )
  if ((counted.rows[0]?.count ?? 0) >= MAX_OF_CUSTOMER_PER_DAY)
    throw tooMany(`The customer has ${MAX_OF_CUSTOMER_PER_DAY} mails of the last 24 hours. Try again later.`, 3_600)
  const { id: customerId, email: recipient } = customer
  return insertRow(rows, context, { template: 'key', customerId, recipient, licenseIds: [licenseId] })
}

/** Lets a worker attempt a failed mail again, with all attempts before it. A mail that has been sent stays sent. */
async function retry(context: WriteContext, id: string): Promise<Mail> {
  const mail = await lockRow(rows, context, id)
  if (mail.status !== 'FAILED' || mail.customerId === null) return rows.show(mail)
  if (mail.attemptedAt !== null && mail.attemptedAt.getTime() > Date.now() - RETRY_AFTER_MS)
    throw tooMany('The last attempt was less than a minute ago. Try again later.', RETRY_AFTER_MS / 1_000)
  const row = await updateRow(rows, context, id, { status: 'PENDING', attempts: 0, nextAttemptAt: new Date() })
  await audit(context, { action: 'mail.retried', resourceType: 'mail', resourceId: id })
  return rows.show(row)
}

const tag = { name: 'Mails', description: 'Mails to customers: their license keys, and the ends of their licenses.' }

export const mails = implement(tag, operations, {
  listMails: {
    summary: 'List mails',
    description: 'Returns the mails of the last 30 days.',
    handle: (call) => {
      const { status, customerId, ...page } = call.query
      return listRows(rows, call, page, [
        ...(status === undefined ? [] : [sql`status = ${status}`]),
        ...(customerId === undefined ? [] : [sql`customer_id = ${customerId}`]),
      ])
    },
  },
  sendMail: {
    summary: 'Send a license key to its customer',
    description:
      'The request is rejected if the customer has 5 mails of the last 24 hours. It also requires the permission `licenses.read`.',
    errors: ['NOT_ENABLED'],
    handle: (call) => {
      requireMail(call.dependencies)
      // The caller may change the address of the customer, and would then receive the key.
      if (!call.permissions.has('licenses.read'))
        throw new ApiError(
          'FORBIDDEN',
          'The mail contains a key. Sending it requires the permission licenses.read too.',
        )
      return addMail(call, call.body.licenseId)
    },
  },
  readMail: { summary: 'Read a mail', handle: (call) => readRow(rows, call, call.params.id) },
  retryMail: {
    summary: 'Send a failed mail again',
    description: 'A mail that has been sent is not sent again.',
    errors: ['NOT_ENABLED'],
    handle: (call) => {
      requireMail(call.dependencies)
      return retry(call, call.params.id)
    },
  },
})
