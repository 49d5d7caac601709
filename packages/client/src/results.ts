/**
 * What the client's calls resolve to. Ordinary outcomes are values: nothing here is thrown.
 * Invariant: `source` says who decided. `online`: the service answered. `offline`: it could not be reached.
 */

/** Why a check was refused online (API document, Errors). `REJECTED`: by a code that this version does not know. */
export type RejectionCode =
  | 'NOT_FOUND'
  | 'BLACKLISTED'
  | 'REVOKED'
  | 'SUSPENDED'
  | 'EXPIRED'
  | 'FINGERPRINT_REQUIRED'
  | 'TOO_MANY_MACHINES'
  | 'REJECTED'

/** Why the service hands out no file. `MACHINE_NOT_ACTIVE`: this machine holds no slot yet; `validate` takes one. */
export type FileRefusalCode = RejectionCode | 'MACHINE_NOT_ACTIVE'

/**
 * Why the service counts as unreachable. `UNEXPECTED_ANSWER`: somebody answered, but not the service, such as the login
 * page of a network. `TIMEOUT`: no answer in time, or a 408, by which the service says that of the request.
 */
export type OutageCause = 'NETWORK_ERROR' | 'TIMEOUT' | 'SERVER_ERROR' | 'UNEXPECTED_ANSWER'

/** Why no stored file allows to go on offline. A file that is not of the documented form is a `BAD_SIGNATURE` too. */
export type OfflineReason =
  | 'NO_FILE'
  | 'BAD_SIGNATURE'
  | 'UNKNOWN_KEY'
  | 'WRONG_LICENSE'
  | 'FILE_EXPIRED'
  | 'REFRESH_NEEDED'
  | 'CLOCK_SET_BACK'

/**
 * A mistake in how the app is set up, by the HTTP status: 401 `UNAUTHORIZED` (the API key), 403 `FORBIDDEN`, 404 and 405
 * `WRONG_ADDRESS` (the base address), 413, 415 and 422 `INVALID_REQUEST`, 429 `RATE_LIMITED`, any other 4xx
 * but 408 `UNEXPECTED_STATUS`. Neither the license nor the network is at fault, so the stored file is not consulted.
 */
export type ConfigurationReason =
  | 'UNAUTHORIZED'
  | 'FORBIDDEN'
  | 'WRONG_ADDRESS'
  | 'INVALID_REQUEST'
  | 'RATE_LIMITED'
  | 'UNEXPECTED_STATUS'

/** The app is set up wrongly; for whoever develops it, not for whoever uses it. */
export interface ConfigurationError {
  source: 'online'
  code: 'CONFIGURATION'
  reason: ConfigurationReason
  /** HTTP status. */
  status: number
  message: string
}

/** The service could not be reached, and without it the call can do nothing. */
export interface Unreachable {
  source: 'offline'
  code: 'UNREACHABLE'
  cause: OutageCause
}

/** Outcome of `validate` and `activate`. Times are ISO 8601 UTC; `expiresAt` is null where the license never expires. */
export type ValidationResult =
  | { source: 'online'; valid: true; code: 'VALID'; expiresAt: string | null }
  | {
      source: 'online'
      valid: false
      code: RejectionCode
      expiresAt: null
      message: string
      /** Given by `activate` with `TOO_MANY_MACHINES`. */
      machines?: { used: number; max: number }
    }
  | ({ valid: false; expiresAt: null } & ConfigurationError)
  | {
      source: 'offline'
      valid: true
      code: 'VALID'
      expiresAt: string | null
      /** Until then the file is good without an online check. */
      refreshAfter: string
      cause: OutageCause
    }
  | {
      source: 'offline'
      valid: false
      code: 'OFFLINE_REFUSED'
      expiresAt: null
      reason: OfflineReason
      cause: OutageCause
    }

/** Outcome of `deactivate`. `NOT_ACTIVE`: this machine held no slot, perhaps because an earlier call released it. */
export type DeactivationResult =
  | { source: 'online'; deactivated: true; code: 'DEACTIVATED' }
  | { source: 'online'; deactivated: false; code: 'NOT_ACTIVE' }
  | ({ deactivated: false } & ConfigurationError)
  | ({ deactivated: false } & Unreachable)

/**
 * Outcome of `refreshFile`. `BAD_FILE`: what came is not a file for this license signed by a shipped key; a stored file
 * stays. `NOT_STORED`: the storage failed. A `FileRefusalCode`: the service hands out no file to this machine now.
 */
export type RefreshResult =
  | { source: 'online'; refreshed: true; code: 'REFRESHED'; expiresAt: string | null; refreshAfter: string }
  | { source: 'online'; refreshed: false; code: FileRefusalCode; message: string }
  | { source: 'online'; refreshed: false; code: 'BAD_FILE'; reason: OfflineReason }
  | { source: 'online'; refreshed: false; code: 'NOT_STORED' }
  | ({ refreshed: false } & ConfigurationError)
  | ({ refreshed: false } & Unreachable)

/** Outcome of `importFile`. */
export type ImportResult =
  | { imported: true; expiresAt: string | null; refreshAfter: string }
  | { imported: false; reason: OfflineReason | 'NOT_STORED' }
