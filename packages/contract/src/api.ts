/** Every operation of the management API by resource, in the order of the documentation. */

import { dryRuns } from './dry-run.ts'
import { accessRules, accessRuleSets } from './management/access-rules.ts'
import { activity, alerts } from './management/activity.ts'
import { analytics } from './management/analytics.ts'
import { auditLog } from './management/audit.ts'
import { commerce } from './management/commerce.ts'
import { apiKeys, tokens } from './management/credentials.ts'
import { customers } from './management/customers.ts'
import { events } from './management/events.ts'
import { licenseFiles } from './management/license-files.ts'
import { licenseJobs } from './management/license-jobs.ts'
import { licenses } from './management/license-operations.ts'
import { machines, slots } from './management/machines.ts'
import { mails } from './management/mails.ts'
import { members } from './management/members.ts'
import { names } from './management/names.ts'
import { orders } from './management/orders.ts'
import { organizations } from './management/organizations.ts'
import { portal, portalFiles, portalSessions } from './management/portal.ts'
import { products } from './management/products.ts'
import { propagation } from './management/propagation.ts'
import { search } from './management/search.ts'
import { openid, passkeys, sessions } from './management/sign-in.ts'
import { signingKeys } from './management/signing-keys.ts'
import { templates } from './management/templates.ts'
import { validators } from './management/validators.ts'
import { webhookEndpoints } from './management/webhooks.ts'

export const api = {
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
  mails,
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
  apiKeys,
  tokens,
  members,
  sessions,
  openid,
  passkeys,
  signingKeys,
  propagation,
  validators,
} as const
