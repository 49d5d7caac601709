/**
 * The results of the client's calls, which return expected outcomes as values instead of throwing them. Invariant: `source` is
 * `online` if the service responded, and `offline` if it could not be reached.
 */

/** The codes of online rejections that this version of the client knows. */
export const REJECTION_CODES = [
  'NOT_FOUND',
  'BLACKLISTED',
  'REVOKED',
  'SUSPENDED',
  'EXPIRED',
  'FINGERPRINT_REQUIRED',
  'TOO_MANY_MACHINES',
] as const

/** The reason for an online rejection (docs/api.md#v8). `REJECTED` represents codes of later versions. */
export type RejectionCode = (typeof REJECTION_CODES)[number] | 'REJECTED'

/**
 * The reason why the service issues no file. `MACHINE_NOT_ACTIVE`: this machine has no slot. `NOT_STARTED`: the term of the
 * license has not started. In both cases, call `validate` first.
 */
export type FileRefusalCode = RejectionCode | 'MACHINE_NOT_ACTIVE' | 'NOT_STARTED'

/**
 * The reason why the service counts as unreachable. `UNEXPECTED_ANSWER`: another program sent the response, such as a captive portal.
 * `TIMEOUT`: no response arrived in time, or a 408 for a request that was sent too slowly.
 */
export type OutageCause = 'NETWORK_ERROR' | 'TIMEOUT' | 'SERVER_ERROR' | 'UNEXPECTED_ANSWER'

/**
 * The reason why no stored file allows the app to run offline. `NO_FILE`: no file is stored for this license key, or a
 * rejection or deactivation ended its use. `BAD_SIGNATURE` includes malformed files.
 */
export type OfflineReason =
  | 'NO_FILE'
  | 'BAD_SIGNATURE'
  | 'UNKNOWN_KEY'
  | 'WRONG_LICENSE'
  | 'WRONG_PRODUCT'
  | 'WRONG_MACHINE'
  | 'FILE_EXPIRED'
  | 'REFRESH_NEEDED'
  | 'CLOCK_SET_BACK'

/**
 * A mistake in the app's configuration, by HTTP status: 401 `UNAUTHORIZED` (the API key), 403 `FORBIDDEN`, 404 and 405 `WRONG_ADDRESS` (the
 * base URL), 413, 415, 422 and (for a call without a verdict) 400 `INVALID_REQUEST`, 429 `RATE_LIMITED`. Any other 4xx except 408 is
 * `UNEXPECTED_STATUS`. The stored file is not used, because the service is reachable.
 */
export type ConfigurationReason =
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'WRONG_ADDRESS'
  | 'INVALID_REQUEST'
  | 'RATE_LIMITED'
  | 'UNEXPECTED_STATUS'

/** The configuration of the app is wrong. The developer of the app must correct it. */
export interface ConfigurationError {
  source: 'online'
  code: 'CONFIGURATION'
  reason: ConfigurationReason
  /** The HTTP status of the response. */
  status: number
  message: string
}

/** The service could not be reached, and the call requires the service. */
export interface Unreachable {
  source: 'offline'
  code: 'UNREACHABLE'
  /** A sentence for the user of the app. */
  message: string
  cause: OutageCause
  /** A description of the failure and its possible cause for the developer. The text may change. */
  detail: string
}

/** The value of an entitlement: `true`, an integer or a text. */
export type EntitlementValue = true | number | string

/** The entitlements of a license by name. The license does not unlock features with other names. */
export type Entitlements = Readonly<Record<string, EntitlementValue>>

/** The result of `validate` and `activate`. Times are ISO 8601 UTC. `expiresAt` is null if the license never expires. */
export type ValidationResult =
  | {
      source: 'online'
      valid: true
      code: 'VALID'
      expiresAt: string | null
      /** The end of the grace period. Present only if the license has expired and is in it. */
      graceEndsAt?: string
      /** Present only if the option `entitlements` is true. */
      entitlements?: Entitlements
    }
  | {
      source: 'online'
      valid: false
      code: RejectionCode
      expiresAt: null
      message: string
      /** The used slots and their limit. Present only if `activate` returns `TOO_MANY_MACHINES`. */
      machines?: { used: number; max: number }
    }
  | ({ valid: false; expiresAt: null } & ConfigurationError)
  | {
      source: 'offline'
      valid: true
      code: 'VALID'
      expiresAt: string | null
      /** The end of the grace period. Present only if the license has expired and is in it. */
      graceEndsAt?: string
      /** The time from which the file is no longer good. A newer file has a later time. */
      refreshAfter: string
      /** The entitlements when the file was issued. Present only if the option `entitlements` is true. */
      entitlements?: Entitlements
      cause: OutageCause
      /** A description of the outage for the developer. */
      detail: string
    }
  | {
      source: 'offline'
      valid: false
      code: 'OFFLINE_REFUSED'
      expiresAt: null
      reason: OfflineReason
      /** The code of the online rejection that ended the use of the file, or `DEACTIVATED`. Absent if nothing ended the use of the file. */
      rejectedAs?: string
      /** The reason and the next step in a sentence for the user of the app. */
      message: string
      cause: OutageCause
      /** A description of the outage for the developer. */
      detail: string
    }

/**
 * The result of `deactivate` and `release`. `NOT_ACTIVE`: no slot was released, because the machine held none or the license has reached its limit of
 * releases (docs/api.md#l2). The stored file can still be used. `NOT_ENABLED`, only of `release`: the license does not let apps release other
 * machines (docs/api.md#u2).
 */
export type DeactivationResult =
  | { source: 'online'; deactivated: true; code: 'DEACTIVATED' }
  | { source: 'online'; deactivated: false; code: 'NOT_ACTIVE' }
  | { source: 'online'; deactivated: false; code: 'NOT_ENABLED'; message: string }
  | ({ deactivated: false } & ConfigurationError)
  | ({ deactivated: false } & Unreachable)

/** A machine that holds a slot of the license. */
export interface Machine {
  /** The name of the machine for `release`. */
  ref: string
  /** The host name that the machine sent with `activate`, or null. */
  hostname: string | null
  /** The approximate time of its last check. */
  lastSeenAt: string
  /** Whether this is the machine of the client. */
  current: boolean
}

/**
 * The result of `machines`, with at most 100 machines. `max` is null without a machine limit. `releasesLeft`, the number of slots that apps may
 * release now, is null without a limit of releases. `NOT_ENABLED`: the license does not let apps list its machines (docs/api.md#u1).
 */
export type MachinesResult =
  | {
      source: 'online'
      code: 'LISTED'
      machines: { used: number; max: number | null }
      releasesLeft: number | null
      list: readonly Machine[]
    }
  | { source: 'online'; code: RejectionCode | 'NOT_ENABLED'; message: string }
  | ConfigurationError
  | Unreachable

/**
 * The result of `refreshFile`. `BAD_FILE`: the received file is for another license, product or machine, or not signed by a shipped key, so the
 * stored file is kept. `NOT_STORED`: the storage failed, or the license was rejected during the fetch. A `FileRefusalCode`: the service
 * currently issues no file to this machine.
 */
export type RefreshResult =
  | { source: 'online'; refreshed: true; code: 'REFRESHED'; expiresAt: string | null; refreshAfter: string }
  | { source: 'online'; refreshed: false; code: FileRefusalCode; message: string }
  | { source: 'online'; refreshed: false; code: 'BAD_FILE'; reason: OfflineReason }
  | { source: 'online'; refreshed: false; code: 'NOT_STORED' }
  | ({ refreshed: false } & ConfigurationError)
  | ({ refreshed: false } & Unreachable)

/** The result of `importFile`. */
export type ImportResult =
  | { imported: true; expiresAt: string | null; refreshAfter: string }
  | { imported: false; reason: OfflineReason | 'NOT_STORED' }
