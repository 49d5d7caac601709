/** Every endpoint of the management API, in the order of the documentation.  */

import type { api } from '@keyward/contract/api'

import { activity } from './activity/activity.ts'
import { analytics } from './analytics/analytics.ts'
import { dryRuns } from './dry-run/dry-run.ts'
import { events } from './events/events.ts'
import { portalFiles } from './license-files/for-customer.ts'
import { licenseFiles } from './license-files/license-files.ts'
import type { Endpoint } from './operations/implement.ts'
import { accessRuleSets } from './resources/access-rule-sets/access-rule-sets.ts'
import { accessRules } from './resources/access-rules/access-rules.ts'
import { alerts } from './resources/alerts/alerts.ts'
import { auditLog } from './resources/audit-log/audit-log.ts'
import { commerce } from './resources/commerce/commerce.ts'
import { apiKeys, tokens } from './resources/credentials/credentials.ts'
import { customers } from './resources/customers/customers.ts'
import { licenseJobs } from './resources/license-jobs/license-jobs.ts'
import { licenses } from './resources/licenses/licenses.ts'
import { slots } from './resources/machines/for-app.ts'
import { machines } from './resources/machines/machines.ts'
import { mails } from './resources/mails/mails.ts'
import { members } from './resources/members/members.ts'
import { openid } from './resources/openid/openid.ts'
import { orders } from './resources/orders/orders.ts'
import { organizations } from './resources/organizations/organizations.ts'
import { passkeys } from './resources/passkeys/passkeys.ts'
import { portal, portalSessions } from './resources/portal/portal.ts'
import { products } from './resources/products/products.ts'
import { sessions } from './resources/sessions/sessions.ts'
import { signingKeys } from './resources/signing-keys/signing-keys.ts'
import { templates } from './resources/templates/templates.ts'
import { propagation } from './resources/validators/propagation.ts'
import { validators } from './resources/validators/validators.ts'
import { webhookEndpoints } from './resources/webhook-endpoints/webhook-endpoints.ts'
import { names } from './search/names.ts'
import { search } from './search/search.ts'

/** An operation of the contract without an implementation does not compile. */
const implemented: Record<keyof typeof api, readonly Endpoint[]> = {
  organizations,
  products,
  templates,
  customers,
  licenses,
  licenseJobs,
  machines,
  slots,
  licenseFiles,
  portalSessions,
  portal,
  portalFiles,
  orders,
  commerce,
  search,
  names,
  accessRules,
  accessRuleSets,
  dryRuns,
  activity,
  alerts,
  analytics,
  auditLog,
  events,
  webhookEndpoints,
  mails,
  apiKeys,
  tokens,
  members,
  sessions,
  openid,
  passkeys,
  signingKeys,
  propagation,
  validators,
}

export const endpoints: readonly Endpoint[] = Object.values(implemented).flat()
