/** The names of the vocabularies, and the texts that several screens show. All other texts stand where they are shown. */

import {
  type Code,
  DEFAULT_FILE_DAYS,
  filesEndWithLease,
  type LicenseStatus,
  type PolicyType,
  type RuleKind,
  type RuleMode,
  type RuleScope,
  type RuleType,
  type Terms,
} from '@keyward/contract'
import type { ActivityType } from '@keyward/contract/management/activity'
import type { Order } from '@keyward/contract/management/orders'
import type { Delivery } from '@keyward/contract/management/webhooks'

/** Returns a number with its noun, such as "1 license" and "1,200 licenses". */
export function counted(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`
}

/** Returns the number of the items of a list that may have more, such as "50 or more licenses". */
export function countedSoFar(count: number, hasMore: boolean, one: string): string {
  return hasMore ? `${count} or more ${one}s` : counted(count, one)
}

export const text = {
  actions: 'Actions',
  daysFromFirstUse: (days: number) => `${days} days from first use`,
  deletedRules: (count: number) => `Deleted ${counted(count, 'rule')}.`,
  files: (policy: Pick<Terms, 'fileDays' | 'leaseSeconds' | 'maxMachines'>) =>
    filesEndWithLease(policy)
      ? 'valid until the lease ends'
      : `valid for ${counted(policy.fileDays ?? DEFAULT_FILE_DAYS, 'day')}`,
  invited: 'Send this link to the member. The link works once and expires after 72 hours.',
  line: (number: number) => `Line ${number}`,
  liveOn: (current: number, all: number) => `Live on ${current} of ${counted(all, 'validator')}.`,
  notSent: 'The first attempt follows within a few seconds.',
  pasteRules: 'Paste one value in each line, or a CSV or JSON export. Lines that begin with # are skipped.',
  took: (ms: number) => (ms < 1_000 ? `${ms} ms` : `${(ms / 1_000).toFixed(1)} s`),

  plans: { FREE: 'Free', LITE: 'Lite', STANDARD: 'Standard' },
  terms: { PERPETUAL: 'Never expires', SUBSCRIPTION: 'Subscription', TRIAL: 'Trial' } satisfies Record<
    PolicyType,
    string
  >,
  deliveries: { SUCCEEDED: 'Delivered', PENDING: 'Waiting', FAILED: 'Failed' } satisfies Record<
    Delivery['status'],
    string
  >,
  orderStates: {
    paid: 'Paid',
    canceled: 'Canceled',
    refunded: 'Refunded',
    disputed: 'Disputed',
  } satisfies Record<Order['state'], string>,
  statuses: {
    active: 'Active',
    grace: 'Grace period',
    suspended: 'Suspended',
    expired: 'Expired',
    revoked: 'Revoked',
  } satisfies Record<LicenseStatus, string>,
  codes: {
    VALID: 'Valid',
    NOT_FOUND: 'Unknown key',
    BLACKLISTED: 'Blacklisted',
    REVOKED: 'Revoked',
    SUSPENDED: 'Suspended',
    EXPIRED: 'Expired',
    FINGERPRINT_REQUIRED: 'No machine id',
    TOO_MANY_MACHINES: 'Too many machines',
  } satisfies Record<Code, string>,
  kinds: { BLACKLIST: 'Blacklist', EXCLUSION: 'Exclusion', RESTRICTION: 'Restriction' } satisfies Record<
    RuleKind,
    string
  >,
  modes: { ENFORCE: 'Enforce', MONITOR: 'Monitor' } satisfies Record<RuleMode, string>,
  modeHints: {
    ENFORCE: 'The rule decides checks.',
    MONITOR: 'The rule only counts its matches. Use this mode to try a rule.',
  } satisfies Record<RuleMode, string>,
  scopes: { ORGANIZATION: 'Everything', PRODUCT: 'One product', LICENSE: 'One license' } satisfies Record<
    RuleScope,
    string
  >,
  types: { IP: 'Address or range', HWID: 'Machine', COUNTRY: 'Country', CUSTOMER: 'Customer' } satisfies Record<
    RuleType,
    string
  >,
  valueHints: {
    IP: 'An address or a range, such as 203.0.113.7 or 203.0.113.0/24.',
    HWID: 'The machine id exactly as the app sends it.',
    COUNTRY: 'The country that the edge network reports for the address.',
    CUSTOMER: 'Search by e-mail address, name or external id.',
  } satisfies Record<RuleType, string>,
  activities: {
    CHECK: 'Check',
    MACHINE_ACTIVATED: 'Machine activated',
    MACHINE_RELEASED: 'Slot released',
    LICENSE_CREATED: 'License created',
    LICENSE_CHANGED: 'License changed',
    LICENSE_SUSPENDED: 'License suspended',
    LICENSE_REINSTATED: 'License reinstated',
    LICENSE_RENEWED: 'License renewed',
    LICENSE_REVOKED: 'License revoked',
    LICENSE_KEY_REPLACED: 'Key replaced',
    FILE_ISSUED: 'Offline file issued',
    TERM_STARTED: 'Term started',
    RELEASE_LIMIT_REACHED: 'Limit of releases reached',
    LEASE_ENDED: 'Slot freed without a check',
  } satisfies Record<ActivityType, string>,
  permissions: {
    'licenses.read': 'See licenses and access rules',
    'licenses.write': 'Change licenses and access rules',
    'products.read': 'See products',
    'products.write': 'Change products',
    'customers.read': 'See customers',
    'customers.write': 'Change customers',
    'analytics.read': 'See analytics',
    'audit.read': 'See the audit log',
    'credentials.write': 'Manage members and credentials',
    'signing-keys.write': 'Rotate signing keys',
    'webhooks.read': 'See events and webhooks',
    'webhooks.write': 'Change webhooks',
    'orders.read': 'See orders and their keys',
    'orders.write': 'Put orders, as a shop does',
  } as Record<string, string>,
  methods: {
    INVITATION: 'invitation',
    ACCESS_TOKEN: 'access token',
    PASSKEY: 'passkey',
    OPERATOR_TOKEN: 'operator token',
    OPENID: 'OpenID Connect',
  } as Record<string, string>,
}
