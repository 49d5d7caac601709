/**
 * The tables as kysely sees them, in camel case. migrations/ explains the columns; `Generated` columns have a default. Ids are
 * UUID text, `bytea` is a Buffer, `bigint` a number (pool.ts), times are Dates.
 */

import type { LicenseStatus, RuleKind, RuleMode, RuleScope, RuleType } from '@keyward/engine'
import type { ColumnType, Generated } from 'kysely'

/** Read as a Date; written as one, or as ISO 8601 text. */
export type Moment = ColumnType<Date, Date | string, Date | string>
type DefaultMoment = ColumnType<Date, Date | string | undefined, Date | string>
export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
export type JsonObject = { readonly [key: string]: Json }
/** Read as an object; written as JSON text, because pg converts an array to a Postgres array. */
type JsonColumn<T = JsonObject> = ColumnType<T, string, string>
type JsonColumnOrNull = ColumnType<JsonObject | null, string | null | undefined, string | null>
type DefaultJsonColumn = ColumnType<JsonObject, string | undefined, string>
type Bytes = ColumnType<Buffer, Uint8Array, Uint8Array>

/** A check of the table ensures this form. */
type StoredEntitlements<Removed = never> = Readonly<Record<string, true | number | string | Removed>>

export type Plan = 'FREE' | 'LITE' | 'STANDARD'
export type CredentialKind = 'API_KEY' | 'MANAGEMENT_TOKEN' | 'ACCESS_TOKEN'
export type SignInMethod = 'INVITATION' | 'ACCESS_TOKEN' | 'PASSKEY' | 'OPERATOR_TOKEN'
export type PolicyType = 'PERPETUAL' | 'SUBSCRIPTION' | 'TRIAL'

export interface Database {
  organizations: {
    id: string
    name: string
    plan: Plan
    /** The limits that the operator has changed, by the names of the quotas. */
    quotas: DefaultJsonColumn
    suspendedAt: Moment | null
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  /** The use of a quota is the sum of its rows, which triggers add. */
  organizationUsage: { organizationId: string; quota: string; used: number }
  deletedOrganizations: { id: string; deletedAt: DefaultMoment }
  members: {
    id: string
    organizationId: string
    email: string
    permissions: string[]
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
  }
  credentials: {
    id: string
    organizationId: string
    kind: CredentialKind
    memberId: string | null
    /** The product that an API key is bound to; the product may be gone. It never changes. */
    productId: string | null
    name: string
    prefix: string
    secretHash: Bytes
    permissions: Generated<string[]>
    expiresAt: Moment | null
    revokedAt: Moment | null
    /** The actor that made it; null for one that is older than this column. */
    createdBy: JsonColumnOrNull
    /** The member from whose access token it descends. The member may be gone. */
    madeByMember: string | null
    createdAt: DefaultMoment
  }
  /** A session of a member, or of the operator when it has a seal. */
  sessions: {
    id: string
    secretHash: Bytes
    organizationId: string | null
    memberId: string | null
    /** The access token that opened it. */
    credentialId: string | null
    operatorSeal: Bytes | null
    method: SignInMethod
    /** The actor that sent the invitation, unless its member did. */
    invitedBy: ColumnType<JsonObject | null, string | null | undefined, never>
    createdAt: DefaultMoment
    lastUsedAt: DefaultMoment
    expiresAt: Moment
  }
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
  /** `memberId` is null for signing in. */
  passkeyChallenges: { challenge: Bytes; memberId: string | null; expiresAt: Moment }
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
    /** Set while it is prepared and has never signed; `retiredAt` is set then, too. */
    preparedAt: Moment | null
  }
  products: {
    id: string
    organizationId: string
    name: string
    metadata: DefaultJsonColumn
    /** null: none. */
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
  licenses: {
    id: string
    organizationId: string
    productId: string
    customerId: string
    key: string
    status: Generated<LicenseStatus>
    policyType: PolicyType
    maxMachines: number | null
    expiresAt: Moment | null
    /** While `expiresAt` is null, the term starts with the first VALID check. */
    durationDays: number | null
    /** How many slots apps may release in 30 days; null: no limit. */
    maxReleases: number | null
    /** How long a machine holds its slot after a renewal; null: until it is released. */
    leaseSeconds: number | null
    metadata: DefaultJsonColumn
    /** Overrides of the product's entitlements; null: none. */
    entitlements: ColumnType<StoredEntitlements<null> | null, string | null | undefined, string | null>
    createdAt: DefaultMoment
    updatedAt: DefaultMoment
    suspendedAt: Moment | null
    revokedAt: Moment | null
  }
  /** A trigger creates it with each license; another keeps `used` equal to the number of machines. */
  licenseSlots: { licenseId: string; used: Generated<number>; unrecorded: Generated<number> }
  machines: {
    id: string
    licenseId: string
    machineId: Bytes
    hostname: string | null
    /** Null: it holds its slot until it is released. */
    leaseEndsAt: Moment | null
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
  /** A trigger creates it with each rule. */
  accessRuleCounters: {
    ruleId: string
    organizationId: string
    matchCount: Generated<number>
    lastMatchedAt: Moment | null
  }
  /** Matches of the rule `gone` count for the rule `kept`. */
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
    licenseId: string
    kind: Generated<'OVERUSE'>
    count: number
    firstAt: Moment
    lastAt: Moment
    acknowledgedAt: Moment | null
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
  }
  idempotencyKeys: {
    owner: string
    key: string
    requestHash: Bytes
    status: number | null
    headers: ColumnType<JsonObject | null, string | null | undefined, string | null>
    body: ColumnType<Json | null, string | null | undefined, string | null>
    createdAt: DefaultMoment
    /** Null for the operator. */
    organizationId: string | null
    /** What the row counts towards the organization's bound. */
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
