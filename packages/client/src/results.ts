/**
 * The results of the client's calls. Expected outcomes are values; the calls throw none of them.
 * Invariant: `source` names who decided. `online`: the service responded. `offline`: it could not be reached.
 */

/** The reason of an online rejection (docs/api.md#v8). `REJECTED`: a code that this version does not know. */
export type RejectionCode =
  | 'NOT_FOUND'
  | 'BLACKLISTED'
  | 'REVOKED'
  | 'SUSPENDED'
  | 'EXPIRED'
  | 'FINGERPRINT_REQUIRED'
  | 'TOO_MANY_MACHINES'
  | 'REJECTED'

/**
 * Why the service issues no file. `MACHINE_NOT_ACTIVE`: this machine has no slot yet; `validate` takes one. `NOT_STARTED`: the term
 * of the license starts with its first valid check; `validate` makes it.
 */
export type FileRefusalCode = RejectionCode | 'MACHINE_NOT_ACTIVE' | 'NOT_STARTED'

/**
 * Why the service counts as unreachable. `UNEXPECTED_ANSWER`: the response does not come from the service but, for
 * example, from the login page of a network. `TIMEOUT`: no response in time, or a 408 for a request that came too slowly.
 */
export type OutageCause = 'NETWORK_ERROR' | 'TIMEOUT' | 'SERVER_ERROR' | 'UNEXPECTED_ANSWER'

/**
 * Why no stored file allows the app to run offline. `NO_FILE`: none is stored for this license key, or a rejection or a
 * deactivation ended its use. `BAD_SIGNATURE` includes files that do not have the documented form.
 */
export type OfflineReason =
  | 'NO_FILE'
  | 'BAD_SIGNATURE'
  | 'UNKNOWN_KEY'
  | 'WRONG_LICENSE'
  | 'WRONG_PRODUCT'
  | 'FILE_EXPIRED'
  | 'REFRESH_NEEDED'
  | 'CLOCK_SET_BACK'

/**
 * A mistake in the app's configuration, by HTTP status: 401 `UNAUTHORIZED` (the API key), 403 `FORBIDDEN`, 404 and 405
 * `WRONG_ADDRESS` (the base address), 413, 415 and 422 `INVALID_REQUEST`, 429 `RATE_LIMITED`, any other 4xx except 408
 * `UNEXPECTED_STATUS`. It says nothing about the license or the network, so the client does not consult the stored file.
 */
export type ConfigurationReason =
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'WRONG_ADDRESS'
  | 'INVALID_REQUEST'
  | 'RATE_LIMITED'
  | 'UNEXPECTED_STATUS'

/** The app is configured wrongly. Its developer, not its user, has to act. */
export interface ConfigurationError {
  source: 'online'
  code: 'CONFIGURATION'
  reason: ConfigurationReason
  /** HTTP status. */
  status: number
  message: string
}

/** The service could not be reached, and the call works online only. */
export interface Unreachable {
  source: 'offline'
  code: 'UNREACHABLE'
  cause: OutageCause
  /** Describes what happened and what may be the cause, in a sentence for the app's developer. Its text may change. */
  detail: string
}

/** The value of an entitlement: `true`, an integer or a text. */
export type EntitlementValue = true | number | string

/** What the license unlocks, by name. A name that is absent is not unlocked. */
export type Entitlements = Readonly<Record<string, EntitlementValue>>

/** The result of `validate` and `activate`. Times are ISO 8601 UTC; `expiresAt` is null if the license never expires. */
export type ValidationResult =
  | {
      source: 'online'
      valid: true
      code: 'VALID'
      expiresAt: string | null
      /** Present with the option `entitlements`. */
      entitlements?: Entitlements
    }
  | {
      source: 'online'
      valid: false
      code: RejectionCode
      expiresAt: null
      message: string
      /** Present in results of `activate` with `TOO_MANY_MACHINES`. */
      machines?: { used: number; max: number }
    }
  | ({ valid: false; expiresAt: null } & ConfigurationError)
  | {
      source: 'offline'
      valid: true
      code: 'VALID'
      expiresAt: string | null
      /** When the file stops being good without an online check. */
      refreshAfter: string
      /** Present with the option `entitlements`: those at the time at which the file was issued. */
      entitlements?: Entitlements
      cause: OutageCause
      /** As in `Unreachable`. */
      detail: string
    }
  | {
      source: 'offline'
      valid: false
      code: 'OFFLINE_REFUSED'
      expiresAt: null
      reason: OfflineReason
      /** The code of the online rejection that ended the use of the file, or `DEACTIVATED`. Absent if there was none. */
      rejectedAs?: string
      cause: OutageCause
      /** As in `Unreachable`. */
      detail: string
    }

/** The result of `deactivate`. `NOT_ACTIVE`: this machine had no slot, perhaps because an earlier call released it. */
export type DeactivationResult =
  | { source: 'online'; deactivated: true; code: 'DEACTIVATED' }
  | { source: 'online'; deactivated: false; code: 'NOT_ACTIVE' }
  | ({ deactivated: false } & ConfigurationError)
  | ({ deactivated: false } & Unreachable)

/**
 * The result of `refreshFile`. `BAD_FILE`: the response is not a file for this license that a shipped key signed; the
 * stored file stays. `NOT_STORED`: the storage failed, or a rejection came in between. A `FileRefusalCode`: the service
 * issues no file to this machine now.
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
