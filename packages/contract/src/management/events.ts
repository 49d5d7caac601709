/** Events (docs/api.md#w1): one declaration for each type. The `data` of most events contains the resource as the API returns it. */

import { z } from 'zod'

import { text } from '../text.ts'
import { EXPIRING_DAYS } from '../vocabulary.ts'
import { accessRule, accessRuleSet, ruleMode } from './access-rules.ts'
import { alert } from './activity.ts'
import { actor, EXAMPLE_ID, id, listQuery, moment, page, timestamp } from './common.ts'
import { apiKey, member, token } from './credentials.ts'
import { customer } from './customers.ts'
import { license, reason } from './licenses.ts'
import { machine } from './machines.ts'
import { operations } from './operations.ts'
import { quotaName } from './organizations.ts'
import { product } from './products.ts'
import { signingKey } from './signing-keys.ts'
import { template } from './templates.ts'
import { webhookEndpoint } from './webhooks.ts'

/** The fields of every `data`. `omitted` lists the members that are absent because the event would exceed its maximum length. */
const common = {
  actor: actor.meta({ description: 'The actor. `SYSTEM` means an app or the passing of time.' }),
  omitted: z
    .array(z.string())
    .optional()
    .meta({
      description: 'The members that are omitted, because the event would exceed 20 kB.',
      example: ['metadata'],
    }),
}

/** An event type. `data` is the schema of the member `data`. */
interface EventDeclaration {
  description: string
  data: z.ZodObject
}

function happened(description: string, resource: z.ZodObject, extra: z.ZodRawShape = {}): EventDeclaration {
  return { description, data: z.object({ resource, ...common, ...extra }) }
}

/** Returns the declaration of a change. `previous` contains the former values of the changed members. */
function changed(description: string, resource: z.ZodObject, extra: z.ZodRawShape = {}): EventDeclaration {
  const previous = resource
    .partial()
    .meta({ id: undefined, description: 'The former values of the members that changed.' })
  return { description, data: z.object({ resource, previous, ...common, ...extra }) }
}

/** Returns the declaration of an event that counts resources instead of containing one. */
function counted(description: string, counts: z.ZodRawShape): EventDeclaration {
  return { description, data: z.object({ ...counts, ...common }) }
}

const count = (description: string, example: number) => z.int().meta({ description, example })
export const MAX_EVENT_IDS = 100
const firstIds = z
  .array(z.uuid())
  .max(MAX_EVENT_IDS)
  .meta({ description: `The ids of the first ${MAX_EVENT_IDS} rules.`, example: [EXAMPLE_ID] })
const machineLicense = { licenseId: z.uuid().meta({ description: 'The license of the machine.', example: EXAMPLE_ID }) }
const tokenMember = {
  memberId: z.uuid().nullable().meta({
    description: 'The member that the access token belongs to; null for a management token.',
    example: null,
  }),
}
/** A license in an event. Long metadata and entitlements may be omitted. */
const licenseOf = license.partial({ metadata: true, entitlements: true }).meta({ id: 'EventLicense' })
const customerOf = customer.partial({ metadata: true }).meta({ id: 'EventCustomer' })
const templateOf = template.partial({ metadata: true, entitlements: true }).meta({ id: 'EventTemplate' })
const productOf = product.partial({ metadata: true, entitlements: true }).meta({ id: 'EventProduct' })

const days = z
  .literal(EXPIRING_DAYS)
  .meta({ description: 'The number of days before the expiry: 30, 7 or 1.', example: 30 })

export const eventTypes = {
  'license.created': happened('A license was created or imported.', licenseOf),
  'license.updated': changed('A license was changed.', licenseOf),
  'license.suspended': changed('A license was suspended.', licenseOf, { reason }),
  'license.reinstated': changed('A suspended license was reinstated, or a revocation was undone.', licenseOf),
  'license.renewed': changed('A license was renewed, which changes its expiry.', licenseOf),
  'license.revoked': changed('A license was revoked, which is permanent.', licenseOf, { reason }),
  'license.deleted': happened('A license was deleted, with its machines and its access rules.', licenseOf),
  'license.key_replaced': changed('The key of a license was replaced.', licenseOf),
  'license.file_issued': happened('A license file for one machine was issued.', licenseOf, {
    machineId: z.string().meta({ description: 'The machine that can use the file.', example: 'A4-F1-00-12' }),
    endsAt: timestamp('The end of the file, and of the slot that it holds.'),
  }),
  'license.started': happened('The term of a license started with its first valid check.', licenseOf),
  'license.expiring': happened('A license expires in 30 days, 7 days or 1 day.', licenseOf, { days }),
  'license.expired': happened('A license has expired.', licenseOf),
  'license.grace_ended': happened('The grace period of an expired license has ended.', licenseOf),
  'license.first_used': happened('A license was used on its first machine.', licenseOf),
  'license.limit_exceeded': happened(
    'More machines send checks for a license than the license has slots. The event is written when the alert opens, and then at most once an hour.',
    licenseOf,
    {
      alert: alert
        .omit({ licenseId: true, webhookEndpointId: true, connectionId: true, kind: true, acknowledgedAt: true })
        .meta({ id: undefined, description: 'The alert of the license.' }),
    },
  ),
  'license.blacklisted': happened(
    'Access rules rejected checks of a license. A license has at most one such event a minute. The event is written only while an enabled webhook endpoint lists this type by name; `*` and `license.*` do not include it.',
    licenseOf,
    {
      checks: z
        .object({
          count: count('The number of rejected checks.', 12),
          firstAt: timestamp('The time of the first of these checks.'),
          lastAt: timestamp('The time of the last of these checks.'),
        })
        .meta({ description: 'The rejected checks since the previous event.' }),
    },
  ),
  'machine.activated': happened('A machine took a slot of a license.', machine, machineLicense),
  'machine.released': happened('A machine lost its slot.', machine, {
    ...machineLicense,
    reason: z.enum(['APP', 'VENDOR', 'CUSTOMER', 'LEASE_ENDED']).meta({
      description:
        'The cause of the release: the app, the vendor, the customer in the portal, or the end of the lease.',
      example: 'APP',
    }),
  }),
  'access_rule.created': happened('An access rule was created.', accessRule),
  'access_rule.updated': changed('An access rule was changed.', accessRule),
  'access_rule.deleted': happened('An access rule was deleted.', accessRule),
  'access_rule.expired': happened('An access rule has expired.', accessRule),
  'access_rules.imported': counted('Access rules were imported. One event covers the whole import.', {
    created: count('The number of created rules.', 2),
    skipped: count('The number of rules that existed before.', 1),
    ruleIds: firstIds,
  }),
  'access_rules.deleted': counted(
    'Access rules were deleted by their ids. One event covers all rules of the request.',
    {
      deleted: count('The number of deleted rules.', 2),
      ruleIds: firstIds,
    },
  ),
  'access_rules.updated': counted(
    'The mode of access rules was changed by one request. One event covers all rules of the request.',
    {
      mode: ruleMode,
      updated: count('The number of changed rules.', 2),
      ruleIds: firstIds,
    },
  ),
  'access_rule_set.replaced': happened(
    'The rules of a set were replaced. One event covers the whole set.',
    accessRuleSet,
    {
      created: count('The number of created rules.', 3),
      updated: count('The number of changed rules.', 1),
      removed: count('The number of removed rules.', 2),
      unchanged: count('The number of unchanged rules.', 40),
    },
  ),
  'access_rule_set.deleted': happened('A set was deleted with its rules.', accessRuleSet),
  'customer.created': happened('A customer was created.', customerOf),
  'customer.updated': changed('A customer was changed.', customerOf),
  'customer.deleted': happened('A customer was deleted, with its access rules.', customerOf),
  'customer.merged': happened(
    'A customer was merged into another customer, which now owns the licenses. `resource` is the deleted customer. The first 1,000 licenses and rules also have events of their own.',
    customerOf,
    {
      into: z.uuid().meta({ description: 'The customer that remains.', example: EXAMPLE_ID }),
      licenses: count('The number of moved licenses.', 2),
      rules: count(
        'The number of rules that were moved, or deleted because the remaining customer has an equal rule.',
        1,
      ),
    },
  ),
  'product.created': happened('A product was created.', productOf),
  'product.updated': changed('A product was changed.', productOf),
  'product.deleted': happened('A product was deleted, with its access rules.', productOf),
  'template.created': happened('A template was created.', templateOf),
  'template.updated': changed('A template was changed. Its licenses stay as they are until it is applied.', templateOf),
  'template.applied': happened('The application of a template to its licenses was started.', templateOf),
  'template.deleted': happened('A template was deleted.', templateOf),
  'api_key.created': happened('An API key was created.', apiKey),
  'api_key.expiring': happened('An API key expires in 14 days.', apiKey),
  'api_key.revoked': happened('An API key was revoked.', apiKey),
  'token.created': happened('A management token or an access token was created.', token, tokenMember),
  'token.expiring': happened('A management token or an access token expires in 14 days.', token, tokenMember),
  'token.revoked': happened('A management token or an access token was revoked.', token, tokenMember),
  'member.invited': happened('A member was invited, for the first time or again.', member),
  'member.updated': changed('The e-mail address or the permissions of a member were changed.', member),
  'member.removed': happened(
    "A member was removed, and the tokens that were created with the member's credentials were revoked.",
    member,
  ),
  'signing_key.rotated': happened('The signing key was rotated. `resource` is the new key.', signingKey),
  'signing_key.withdrawn': happened(
    'A signing key was withdrawn. Apps should no longer trust the files that it signed.',
    signingKey,
  ),
  'webhook_endpoint.disabled': happened('Keyward has disabled a webhook endpoint.', webhookEndpoint, {
    reason: z.enum(['GONE', 'FAILING']).meta({
      description: 'The endpoint responded with 410, or every attempt within five days failed.',
      example: 'FAILING',
    }),
  }),
  ping: happened(
    'A test of a webhook endpoint was requested. Only that endpoint receives this event.',
    webhookEndpoint,
  ),
  'quota.reached': counted('The use of a quota has reached 80 % or 100 %.', {
    quota: quotaName,
    percent: z.literal([80, 100]).meta({ description: 'The percentage of the quota that was reached.', example: 80 }),
    used: count('The current use of the quota.', 800_000),
    limit: count('The limit of the quota.', 1_000_000),
  }),
} as const

export type EventType = keyof typeof eventTypes

/** The types that an endpoint receives only if it lists them by name. Groups and `*` do not include these types. */
export const OPT_IN_TYPES: readonly EventType[] = ['license.blacklisted']
export const EVENT_TYPES: readonly EventType[] = Object.keys(eventTypes).filter(
  (name): name is EventType => name in eventTypes,
)

const typeOf = z.string().meta({
  description: 'The type of the event. Later versions may add types.',
  example: 'license.suspended',
})

/** An event in the responses of `GET /events` and in webhooks. */
export const event = z
  .object({
    id: z
      .uuid()
      .meta({ description: 'The id of the event, which is the same in every delivery.', example: EXAMPLE_ID }),
    type: typeOf,
    timestamp: timestamp('The time at which the event happened.'),
    organizationId: z.uuid().meta({ description: 'The organization.', example: EXAMPLE_ID }),
    data: z.record(z.string(), z.unknown()).meta({
      description:
        'The resource as the API returns it, `previous` for a change, and `actor`. The members depend on the type.',
      example: { resource: { id: EXAMPLE_ID, status: 'suspended' }, actor: { type: 'SYSTEM' } },
    }),
  })
  .meta({ id: 'Event', description: 'A change of a resource, or another occurrence that concerns it.' })
export type Event = z.infer<typeof event>

const eventFilter = {
  type: text(100).optional().meta({
    description: 'Returns only events of this type, or of a group such as `license.*`.',
    example: 'license.suspended',
  }),
  resourceId: id('Returns only events of this resource.').optional(),
  from: moment('Returns only events from this time on.').optional(),
  to: moment('Returns only events before this time.').optional(),
}

export const events = operations({
  listEvents: { route: 'GET /events', needs: 'webhooks.read', query: listQuery(eventFilter), returns: page(event) },
  readEvent: { route: 'GET /events/{id}', needs: 'webhooks.read', returns: event },
})
