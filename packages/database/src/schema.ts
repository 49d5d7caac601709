/**
 * The types of the tables for kysely, in camel case. migrations/ documents the columns. `Generated` columns have a
 * default. Ids are UUID text, `bytea` is a Buffer, `bigint` is a number (pool.ts), and times are Dates.
 */

import type { LicenseStatus, RuleKind, RuleMode, RuleScope, RuleType } from '@keyward/engine'
import type { ColumnType, Generated } from 'kysely'

import type {
  Bytes,
  DefaultJsonColumn,
  DefaultMoment,
  Json,
  JsonColumn,
  JsonColumnOrNull,
  JsonObject,
  Moment,
} from './columns.ts'
import type { LicenseJobTable } from './license-job-table.ts'
import type { PortalSessionTable } from './portal-session-table.ts'

/** The stored form of entitlements. A check constraint of the table ensures this form. */
type StoredEntitlements<Removed = never> = Readonly<Record<string, boolean | number | string | Removed>>

export type Plan = 'FREE' | 'LITE' | 'STANDARD'
export type CredentialKind = 'API_KEY' | 'MANAGEMENT_TOKEN' | 'ACCESS_TOKEN'
export type SignInMethod = 'INVITATION' | 'ACCESS_TOKEN' | 'PASSKEY' | 'OPERATOR_TOKEN' | 'OPENID'
export type PolicyType = 'PERPETUAL' | 'SUBSCRIPTION' | 'TRIAL'

export interface Database {
  organizations: {
    id: string
    name: string
    plan: Plan
    /** The limits that the operator has changed, by the name of the quota. */
    quotas: DefaultJsonColumn
    suspendedAt: Moment | null
    /** Whether validators may sign responses for the organization (docs/api.md#g1). */
    signsAnswers: Generated<boolean>
    /** The IANA name of the time zone in which the days of the organization begin and end. */
    timeZone: string | null
    /** The name from which mails come (docs/api.md#e2). Null: the name of the organization. */
    mailSenderName: string | null
    mailReplyTo: string | null
    /** Whether customers receive the keys of their orders. */
    mailKeys: Generated<boolean>
    /** The number of days before the end of a license at which its customer receives a mail. */
    mailEndingDays: 30 | 7 | 1 | null
    /** Whether customers can request a link to the portal by mail. */
    mailPortal: Generated<boolean>
    accentColor: string | null
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  /** The use of quotas. Triggers add rows. The use of a quota is the sum of `used` over all rows of the organization and the quota. */
  organizationUsage: { organizationId: string; quota: string; used: number; day: Date | null }
  deletedOrganizations: { id: string; deletedAt: DefaultMoment }
  members: {
    id: string
    organizationId: string
    email: string
    permissions: string[]
    /** The identity provider's account with which the member first signed in. */
    openidIssuer: Generated<string | null>
    openidSubject: Generated<string | null>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  credentials: {
    id: string
    organizationId: string
    kind: CredentialKind
    memberId: string | null
    /** The product that an API key is bound to. The column never changes, even if the product is deleted. */
    productId: string | null
    name: string
    prefix: string
    secretHash: Bytes
    permissions: Generated<string[]>
    expiresAt: Moment | null
    revokedAt: Moment | null
    /** The actor that created the credential, or null when the credential is older than this column. */
    createdBy: JsonColumnOrNull
    /** The member whose access token created the credential, directly or through other credentials. The member may be deleted. */
    madeByMember: string | null
    createdAt: DefaultMoment
  }
  /** Sessions of members, and of the operator if `operatorSeal` is set. */
  sessions: {
    id: string
    secretHash: Bytes
    organizationId: string | null
    memberId: string | null
    /** The access token that opened the session. */
    credentialId: string | null
    operatorSeal: Bytes | null
    method: SignInMethod
    /** The actor that sent the invitation, or null if the session was not opened with an invitation from another actor. */
    invitedBy: ColumnType<JsonObject | null, string | null | undefined, never>
    createdAt: DefaultMoment
    lastUsedAt: DefaultMoment
    expiresAt: Moment
  }
  portalSessions: PortalSessionTable
  invitations: {
    memberId: string
    organizationId: string
    secretHash: Bytes
    invitedBy: JsonColumn
    createdAt: DefaultMoment
    expiresAt: Moment
  }
  passkeys: {
    id: string
    organizationId: string
    memberId: string
    name: string
    credentialId: Bytes
    publicKey: Bytes
    counter: number
    transports: string[]
    createdAt: DefaultMoment
    lastUsedAt: Moment | null
  }
  /** Challenges for passkeys. `memberId` is null for a sign-in. */
  passkeyChallenges: { challenge: Bytes; memberId: string | null; expiresAt: Moment }
  /** Sign-ins with OpenID Connect that have begun. `email` is verified. */
  openidAttempts: {
    secretHash: Bytes
    redeemedAt: Moment | null
    email: string | null
    issuer: string | null
    subject: string | null
    expiresAt: Moment
  }
  credentialUses: { credentialId: string; lastUsedAt: Moment }
  signingKeys: {
    id: string
    organizationId: string
    keyId: string
    publicKey: Bytes
    privateKeyEncrypted: Bytes
    masterKeyId: string
    createdAt: DefaultMoment
    retiredAt: Moment | null
    withdrawnAt: Moment | null
    /** The time at which the key was prepared, or null once it has begun to sign. A prepared key also has `retiredAt`. */
    preparedAt: Moment | null
    /** The delegations by the public keys of the validators (services/management/src/delegations). */
    delegations: DefaultJsonColumn
    /** The time at which all delegations were last signed, or null if that has not happened. */
    delegatedAt: Moment | null
  }
  products: {
    id: string
    organizationId: string
    name: string
    metadata: DefaultJsonColumn
    /** The defaults of the product's licenses, or null when there are none. */
    entitlements: ColumnType<StoredEntitlements | null, string | null | undefined, string | null>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  customers: {
    id: string
    organizationId: string
    email: string
    name: string | null
    externalId: string | null
    metadata: DefaultJsonColumn
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  mergedCustomers: { id: string; organizationId: string; mergedInto: string; mergedAt: DefaultMoment }
  licenseTemplates: {
    id: string
    organizationId: string
    productId: string
    name: string
    policyType: PolicyType
    maxMachines: number | null
    durationDays: number | null
    maxReleases: number | null
    leaseSeconds: number | null
    graceDays: number
    fileDays: number | null
    entitlements: ColumnType<StoredEntitlements<null> | null, string | null | undefined, string | null>
    metadata: DefaultJsonColumn
    /** The prices of shops that sell the template. */
    priceIds: Generated<string[]>
    /** The effects of orders on licenses. */
    orders: DefaultJsonColumn
    /** The values that the template had since it was last applied, by field. */
    former: DefaultJsonColumn
    /** The progress of the latest application, or null if the template was never applied. */
    application: ColumnType<unknown, string | null | undefined, string | null>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  licenseJobs: LicenseJobTable
  orders: {
    id: string
    organizationId: string
    provider: string
    orderId: string
    line: string
    templateId: string
    state: 'paid' | 'canceled' | 'refunded' | 'disputed'
    quantity: number
    paidThrough: Moment | null
    occurredAt: Moment
    licenseIds: Generated<string[]>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  /** Other ids by which a shop refers to an order. */
  orderReferences: { organizationId: string; provider: string; reference: string; orderId: string }
  commerceConnections: {
    id: string
    organizationId: string
    name: string
    shop: 'stripe' | 'paddle' | 'polar' | 'lemonsqueezy' | 'fastspring'
    mode: 'live' | 'test'
    states: Generated<('paid' | 'canceled' | 'refunded' | 'disputed')[]>
    unknownPrices: Generated<'wait' | 'ignore'>
    /** The secret with which the shop signs its events, encrypted with the master key. */
    secretEncrypted: Bytes
    masterKeyId: string
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  /** The inbox of events of shops. */
  commerceEvents: {
    id: string
    organizationId: string
    connectionId: string
    /** The id of the event in the shop. */
    eventId: string
    type: string
    /** The event as JSON text. */
    body: string
    bytes: number
    state: Generated<'PENDING' | 'WAITING' | 'DONE' | 'IGNORED' | 'FAILED'>
    orderId: string | null
    attempts: Generated<number>
    nextAttemptAt: ColumnType<Date | null, Date | undefined, Date | null>
    /** The ids of prices, orders or customers that the event waits for. */
    waitsFor: Generated<string[]>
    error: string | null
    receivedAt: DefaultMoment
    handledAt: Moment | null
  }
  licenses: {
    id: string
    organizationId: string
    productId: string
    customerId: string
    templateId: string | null
    externalId: string | null
    key: string
    status: Generated<LicenseStatus>
    policyType: PolicyType
    maxMachines: number | null
    expiresAt: Moment | null
    /** The length of the term. While `expiresAt` is null, the term starts with the first VALID check. */
    durationDays: number | null
    /** The number of slots that apps may release in 30 days, or null for no limit. */
    maxReleases: number | null
    /**
     * The number of seconds for which a machine holds its slot after a claim or renewal, or null if it holds the slot until the release.
     */
    leaseSeconds: number | null
    /** The number of days of 24 hours after `expiresAt` for which checks stay valid. */
    graceDays: Generated<number>
    /** The lifetime of license files in days, or null for 30 days and for the lease of a license with leases. */
    fileDays: number | null
    metadata: DefaultJsonColumn
    /** Overrides of the product's entitlements, or null when there are none. */
    entitlements: ColumnType<StoredEntitlements<null> | null, string | null | undefined, string | null>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
    suspendedAt: Moment | null
    revokedAt: Moment | null
  }
  /** A trigger creates a row with each license. Another trigger keeps `used` equal to the number of machines. */
  licenseSlots: { licenseId: string; used: Generated<number>; unrecorded: Generated<number> }
  machines: {
    id: string
    licenseId: string
    /** The database sets the column. It is null in rows of earlier versions until `npm run migrate` has filled it in. */
    organizationId: ColumnType<string | null, never, never>
    machineId: Bytes
    hostname: string | null
    /** The end of the machine's lease, or null when the machine holds its slot until the release. */
    leaseEndsAt: Moment | null
    /** The end of the machine's file, or null if none was issued. Until then, apps do not release the slot. */
    fileEndsAt: Moment | null
    firstSeenAt: DefaultMoment
    lastSeenAt: DefaultMoment
  }
  accessRules: {
    id: string
    organizationId: string
    kind: RuleKind
    mode: Generated<RuleMode>
    setId: string | null
    type: RuleType
    value: Bytes
    scope: RuleScope
    productId: string | null
    licenseId: string | null
    scopeId: ColumnType<string | null, never, never>
    customerId: string | null
    note: string | null
    expiresAt: Moment | null
    allowSuspendedOrExpired: Generated<boolean>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
    createdBy: JsonColumn
  }
  accessRuleSets: {
    id: string
    organizationId: string
    name: string
    version: Generated<string>
    rules: Generated<number>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  /** The counters of a rule. A trigger creates the row with the rule. */
  accessRuleCounters: {
    ruleId: string
    organizationId: string
    matchCount: Generated<number>
    lastMatchedAt: Moment | null
  }
  /**
   * Rules that became duplicates when two customers were merged. Matches of the deleted rule `gone` are added to the counters of `kept`.
   */
  monitoredMatches: { ruleId: string; hour: Moment; count: number }
  foldedRules: { gone: string; kept: string; foldedAt: DefaultMoment }
  checkCounts: { hour: Moment; organizationId: string; productId: string | null; code: string; count: number }
  activity: {
    at: Moment
    id: string
    organizationId: string
    licenseId: string
    type: string
    code: string | null
    machineId: ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array | null>
    count: Generated<number>
    firstAt: Moment
    lastAt: Moment
    actor: ColumnType<JsonObject | null, string | null | undefined, string | null>
  }
  alerts: {
    id: string
    organizationId: string
    /** The license, the webhook endpoint or the connection that the alert is about. */
    licenseId: string | null
    endpointId: string | null
    connectionId: string | null
    kind: Generated<'OVERUSE' | 'WEBHOOK_DISABLED' | 'EVENT_WAITING'>
    count: number
    firstAt: Moment
    lastAt: Moment
    acknowledgedAt: Moment | null
    /** The time at which the last occurrence of the alert was recorded. */
    notedAt: DefaultMoment
  }
  flushes: { validatorId: string; number: number; at: DefaultMoment }
  auditLog: {
    id: string
    organizationId: string | null
    at: DefaultMoment
    actor: JsonColumn
    action: string
    resourceType: string
    resourceId: string | null
    changes: ColumnType<Json | null, string | null | undefined, string | null>
    before: ColumnType<Json | null, string | null | undefined, string | null>
    bytes: Generated<number>
  }
  /** Events of organizations. `data` is JSON text, which Postgres stores unchanged. */
  events: {
    id: string
    organizationId: string
    type: string
    resourceId: string | null
    data: ColumnType<JsonObject, string, never>
    bytes: Generated<number>
    isOfCaller: Generated<boolean>
  }
  /** Records of changes that validators have made, until management replaces the records with events. Triggers write the records. */
  occurrences: {
    id: string
    xid: string
    kind: string
    organizationId: string | null
    licenseId: string | null
    machineId: Buffer | null
    details: JsonObject | null
    /** The machines. Each array has one element per machine, and is null in an occurrence about a license. */
    ids: string[] | null
    licenseIds: string[] | null
    machineIds: Buffer[] | null
    hostnames: (string | null)[] | null
    firstSeen: Date[] | null
    lastSeen: Date[] | null
    leaseEnds: (Date | null)[] | null
    changes: number
  }
  /** Checks with the code `BLACKLISTED` that no event contains yet, by license. Validators write them. */
  blacklistedChecks: {
    licenseId: string
    organizationId: string
    count: number
    firstAt: Moment
    lastAt: Moment
    since: DefaultMoment
  }
  webhookEndpoints: {
    id: string
    organizationId: string
    url: string
    types: string[]
    description: string | null
    enabled: Generated<boolean>
    disabledReason: 'GONE' | 'FAILING' | null
    failingSince: Moment | null
    /** The secret, encrypted with the master key. Deliveries are also signed with the previous secret until `previousUntil`. */
    secretEncrypted: Bytes
    previousEncrypted: ColumnType<Buffer | null, Uint8Array | null | undefined, Uint8Array | null>
    previousUntil: Moment | null
    masterKeyId: string
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  webhookDeliveries: {
    id: string
    organizationId: string
    endpointId: string
    eventId: string
    eventType: string
    cause: 'EVENT' | 'RESEND' | 'REPLAY' | 'TEST'
    status: Generated<'PENDING' | 'SUCCEEDED' | 'FAILED'>
    attempts: Generated<number>
    nextAttemptAt: ColumnType<Date | null, Date | undefined, Date | null>
    /** The worker that is attempting the delivery. */
    worker: string | null
  }
  mails: {
    id: string
    organizationId: string
    template: 'key' | 'ending' | 'portal'
    customerId: string | null
    recipient: string | null
    licenseIds: string[]
    /** The end of the license that the mail announces. */
    endsAt: Moment | null
    status: Generated<'PENDING' | 'SUCCEEDED' | 'FAILED'>
    attempts: Generated<number>
    attemptedAt: Moment | null
    nextAttemptAt: ColumnType<Date | null, Date | undefined, Date | null>
    worker: string | null
    error: string | null
  }
  usedLicenses: { licenseId: string }
  eventSchedules: { name: string; until: Moment }
  /** Events that the scheduler has written, by resource and mark. */
  eventMarks: { resourceId: string; mark: string; due: Moment }
  quotaLevels: { organizationId: string; quota: string; percent: number }
  idempotencyKeys: {
    owner: string
    key: string
    requestHash: Bytes
    status: number | null
    headers: ColumnType<JsonObject | null, string | null | undefined, string | null>
    body: ColumnType<Json | null, string | null | undefined, string | null>
    createdAt: DefaultMoment
    /** The organization of the caller, or null for the operator. */
    organizationId: string | null
    /** The number of bytes of the row that count towards the organization's limit. */
    bytes: Generated<number>
  }
  /** Keys with which the services authenticate each other. */
  internalKeys: { purpose: string; secret: Generated<string>; changedAt: DefaultMoment }
  rateLimits: { key: string; points: Generated<number>; expire: number | null }
  validators: {
    id: string
    name: string
    startedAt: DefaultMoment
    seenAt: DefaultMoment
    applied: string | null
    ready: Generated<boolean>
    details: DefaultJsonColumn
  }
}
