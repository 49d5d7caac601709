/**
 * The payload of an offline license file: its fields, its serialization and its parser.
 * Invariant: `parsePayload` accepts what `serializePayload` writes for a valid payload, and returns equal values.
 */

export const POLICY_TYPES = ['PERPETUAL', 'SUBSCRIPTION', 'TRIAL'] as const
export type PolicyType = (typeof POLICY_TYPES)[number]

/** The payload of an offline license file (docs/api.md#f1). Times are ISO 8601 UTC with milliseconds. */
export interface LicensePayload {
  licenseKey: string
  licenseId: string
  /** The id of the product, or undefined in a file of an earlier version. */
  productId?: string
  /** The id of the only machine that may use the file, or undefined in a file for all machines of the license. */
  machineId?: string
  customerEmail: string
  policy: {
    type: PolicyType
    /** The maximum number of machines; null for no limit. */
    maxMachines: number | null
    /** The expiry; null for a license that never expires. */
    expiresAt: string | null
    /** The end of the grace period, or undefined for a license without one. */
    graceEndsAt?: string
  }
  issuedAt: string
  refreshAfter: string
  /** The id of the key that signed the file. */
  kid: string
  /** The entitlements of the license, or undefined if it has none. */
  entitlements?: Readonly<Record<string, EntitlementValue>>
}

/** The value of an entitlement: `true`, an integer or a text (docs/api.md#v13). */
export type EntitlementValue = true | number | string

const DAY_MS = 24 * 60 * 60 * 1000
/** The default lifetime of a file, unless the license ends sooner (docs/api.md#f2). */
export const FILE_LIFETIME_MS = 30 * DAY_MS
/** The longest lifetime that a vendor can choose. */
export const MAX_FILE_LIFETIME_MS = 366 * DAY_MS

/**
 * Returns the `refreshAfter` of a file issued at `issuedAtMs`: the end of its lifetime, or the end of the license with its grace period if
 * that is sooner.
 */
export function refreshAfterMs(issuedAtMs: number, endsAtMs: number | null, lifetimeMs = FILE_LIFETIME_MS): number {
  const latest = issuedAtMs + lifetimeMs
  return endsAtMs === null ? latest : Math.min(latest, endsAtMs)
}

/** Returns the bytes to sign: compact JSON with the fields in the documented order, independent of their order in the object. */
export function serializePayload(payload: LicensePayload): Uint8Array {
  const { licenseKey, licenseId, productId, machineId, customerEmail, policy } = payload
  const { issuedAt, refreshAfter, kid, entitlements } = payload
  const { type, maxMachines, expiresAt, graceEndsAt } = policy
  const ordered = {
    licenseKey,
    licenseId,
    productId,
    machineId,
    customerEmail,
    policy: { type, maxMachines, expiresAt, graceEndsAt },
    issuedAt,
    refreshAfter,
    kid,
    entitlements: entitlements && Object.keys(entitlements).length > 0 ? entitlements : undefined,
  }
  return new TextEncoder().encode(JSON.stringify(ordered))
}

/**
 * Parses a payload. Returns null when the bytes are not strict UTF-8 or not JSON, or when a required field is missing or
 * invalid. Ignores unknown fields and invalid optional fields, so that apps can read files of newer servers.
 */
export function parsePayload(bytes: Uint8Array): LicensePayload | null {
  return readPayload(parseJson(bytes))
}

/** Returns the payload in a parsed value, or null if a required field is missing or invalid. Omits invalid optional fields. */
export function readPayload(value: unknown): LicensePayload | null {
  if (!isRecord(value) || !isRecord(value['policy'])) return null
  const { licenseKey, licenseId, productId, machineId, customerEmail, issuedAt, refreshAfter, kid, entitlements } =
    value
  const { type, maxMachines, expiresAt, graceEndsAt } = value['policy']
  if (!isText(licenseKey) || !isText(licenseId) || !isText(customerEmail) || !isText(kid)) return null
  // Without the member, a file for one machine would be a file for all machines.
  if (machineId !== undefined && !isText(machineId)) return null
  if (!isTimestamp(issuedAt) || !isTimestamp(refreshAfter)) return null
  if (!isPolicyType(type) || !isMachineLimit(maxMachines)) return null
  if (expiresAt !== null && !isTimestamp(expiresAt)) return null
  if ((type === 'PERPETUAL') !== (expiresAt === null)) return null
  const unlocked = readEntitlements(entitlements)
  const policy = { type, maxMachines, expiresAt, ...(isTimestamp(graceEndsAt) && { graceEndsAt }) }
  return {
    licenseKey,
    licenseId,
    ...(isText(productId) && { productId }),
    ...(machineId !== undefined && { machineId }),
    customerEmail,
    policy,
    issuedAt,
    refreshAfter,
    kid,
    ...(unlocked !== null && { entitlements: unlocked }),
  }
}

/** Parses strict UTF-8 as JSON. Returns null for any other bytes. */
export function parseJson(bytes: Uint8Array): unknown {
  try {
    // `ignoreBOM` keeps a byte order mark in the text, where JSON.parse rejects it.
    return JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes))
  } catch {
    return null
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

export function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== ''
}

/** Returns parsed entitlements without those that are `false`. Returns null unless each is a boolean, a safe integer or a text. */
export function readEntitlements(value: unknown): Record<string, EntitlementValue> | null {
  if (!isRecord(value)) return null
  const read: Record<string, EntitlementValue> = {}
  for (const [name, member] of Object.entries(value)) {
    if (member === false) continue
    if (member !== true && typeof member !== 'string' && !isInteger(member)) return null
    read[name] = member
  }
  return read
}

function isInteger(value: unknown): value is number {
  return Number.isSafeInteger(value)
}

function isPolicyType(value: unknown): value is PolicyType {
  return POLICY_TYPES.some((type) => type === value)
}

function isMachineLimit(value: unknown): value is number | null {
  return value === null || (Number.isSafeInteger(value) && Number(value) >= 1)
}

/** Returns whether the value has the format of `toISOString`, which every language parses as the same time. */
function isTimestamp(value: unknown): value is string {
  if (typeof value !== 'string') return false
  const moment = new Date(value)
  return !Number.isNaN(moment.getTime()) && moment.toISOString() === value
}
