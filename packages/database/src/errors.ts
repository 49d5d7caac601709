/**
 * Classifies the errors of Postgres and of its driver. All other code uses these functions, so that a SQLSTATE has one
 * meaning everywhere (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */

/** Matches a SQLSTATE, which never begins with E, unlike the error codes of operating systems. */
const SQL_STATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/

/**
 * Matches connection exceptions (08), insufficient resources (53), operator intervention (57), system errors (58), a standby (25006) and an
 * unavailable lock (55P03).
 */
const UNAVAILABLE = /^(?:08|53|57|58|25006|55P03)/

/** Matches a protocol violation (08P01), cardinality (21), data (22) and integrity errors (23), and syntax or access errors (42). */
const REJECTED = /^(?:08P01|21|22|23|42)/

/** The SQLSTATEs of an undefined function, table, column or schema, and of a missing privilege. */
const MISSING = new Set(['42883', '42P01', '42703', '3F000', '42501'])

const INSUFFICIENT_PRIVILEGE = '42501'
const UNDEFINED_FUNCTION = '42883'
const LOCK_NOT_AVAILABLE = '55P03'
const QUERY_CANCELED = '57014'
const READ_ONLY = '25006'
const DISK_FULL = '53100'
const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'
const RETRYABLE = new Set(['40001', '40P01', FOREIGN_KEY_VIOLATION])

/** Matches the messages of driver errors that have no code. */
const DRIVER_MESSAGE =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout e)/
const QUERY_TIMEOUT_MESSAGE = 'Query read timeout'
const NETWORK_CODE = /^E(?:CONN|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN)/

/** Returns the SQLSTATE that the server reported, or null when the error does not come from the server. */
export function sqlState(error: unknown): string | null {
  const code = codeOf(error)
  return SQL_STATE.test(code) ? code : null
}

/** Returns the name of the unique or foreign key constraint that a statement violated, or '' for any other error. */
export function violatedConstraint(error: unknown): string {
  const state = sqlState(error)
  if (state !== UNIQUE_VIOLATION && state !== FOREIGN_KEY_VIOLATION) return ''
  return error instanceof Error && 'constraint' in error && typeof error.constraint === 'string' ? error.constraint : ''
}

/** Returns whether a statement failed because a lock was not available within `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === LOCK_NOT_AVAILABLE
}

/** Returns whether a statement failed because a row with the same values of unique columns exists. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === UNIQUE_VIOLATION
}

/**
 * Returns whether the same transaction may succeed when it runs again. The cause was a serialization failure, a deadlock, or the deletion
 * of a row that the transaction refers to.
 */
export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(sqlState(error) ?? '')
}

/**
 * Returns whether the server is unreachable, full, stopping, too slow or a standby, or a row stays locked for too long.
 */
export function isServerUnavailable(error: unknown): boolean {
  return UNAVAILABLE.test(sqlState(error) ?? '')
}

/** Returns whether a statement failed because the disk of the server is full. */
export function isDiskFull(error: unknown): boolean {
  return sqlState(error) === DISK_FULL
}

/** Returns whether a statement failed because the server is a standby, which accepts no writes and no LISTEN. */
export function isStandby(error: unknown): boolean {
  return sqlState(error) === READ_ONLY
}

/** Returns whether the connection could not be opened, broke or timed out. Such errors have no SQLSTATE. */
export function isConnectionFailure(error: unknown): boolean {
  return NETWORK_CODE.test(codeOf(error)) || (error instanceof Error && DRIVER_MESSAGE.test(error.message))
}

/** Returns whether a statement exceeded a timeout of the server or of the client. */
export function isTooSlow(error: unknown): boolean {
  return sqlState(error) === QUERY_CANCELED || isQueryTimeout(error)
}

/** Returns whether the client stopped waiting for the response to a statement. */
export function isQueryTimeout(error: unknown): boolean {
  return error instanceof Error && error.message === QUERY_TIMEOUT_MESSAGE
}

/**
 * Returns whether the data itself was rejected, by the server or before it was sent, so that a retry cannot succeed. A statement that
 * failed because an object or a privilege is missing can succeed after a migration.
 */
export function isDataRejected(error: unknown): boolean {
  return error instanceof RangeError || (REJECTED.test(sqlState(error) ?? '') && !isSchemaMissing(error))
}

/** Returns whether a statement failed because an object or a privilege that migrations create is missing. */
export function isSchemaMissing(error: unknown): boolean {
  return MISSING.has(sqlState(error) ?? '')
}

export function isPermissionDenied(error: unknown): boolean {
  return sqlState(error) === INSUFFICIENT_PRIVILEGE
}

export function isFunctionMissing(error: unknown): boolean {
  return sqlState(error) === UNDEFINED_FUNCTION
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
