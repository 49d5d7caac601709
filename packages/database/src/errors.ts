/**
 * Classifies the errors of Postgres and of its driver. Every other part of the code asks these functions, so that one SQLSTATE
 * means one thing everywhere (https://www.postgresql.org/docs/current/errcodes-appendix.html).
 */

/** No SQLSTATE begins with E, as the error codes of operating systems do. */
const SQL_STATE = /^[0-9A-DF-Z][0-9A-Z]{4}$/

/** Classes: connection exception, insufficient resources, operator intervention, system error; a standby; a lock not available. */
const UNAVAILABLE = /^(?:08|53|57|58|25006|55P03)/

/** Classes: cardinality, data, integrity, syntax or access; and a violation of the protocol. */
const REJECTED = /^(?:08P01|21|22|23|42)/

/** Undefined function, table, column and schema, and a table that is not granted. */
const MISSING = new Set(['42883', '42P01', '42703', '3F000', '42501'])

const INSUFFICIENT_PRIVILEGE = '42501'
const UNDEFINED_FUNCTION = '42883'
const UNIQUE_VIOLATION = '23505'
const FOREIGN_KEY_VIOLATION = '23503'
const RETRYABLE = new Set(['40001', '40P01', FOREIGN_KEY_VIOLATION])

/** How the driver begins the messages of errors that have no code. */
const DRIVER_MESSAGE =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|Query read timeout|timeout e)/
const NETWORK_CODE = /^E(?:CONN|PIPE|TIMEDOUT|HOSTUNREACH|NETUNREACH|AI_AGAIN)/

/** Returns the SQLSTATE that the server reported, or null when the error is none of the server. */
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

/** Whether a row with the same unique columns exists. */
export function isDuplicate(error: unknown): boolean {
  return sqlState(error) === UNIQUE_VIOLATION
}

/**
 * Whether the same transaction may succeed when it runs again: a serialization failure, a deadlock, or a row that was deleted
 * between being read and being referred to.
 */
export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(sqlState(error) ?? '')
}

/** Whether the server is away, full, stopping, too slow or a standby, or somebody holds a row for too long. */
export function isServerUnavailable(error: unknown): boolean {
  return UNAVAILABLE.test(sqlState(error) ?? '')
}

/** Whether the connection could not be made, broke, or timed out, which the server reports with no SQLSTATE. */
export function isConnectionFailure(error: unknown): boolean {
  return NETWORK_CODE.test(codeOf(error)) || (error instanceof Error && DRIVER_MESSAGE.test(error.message))
}

/** Whether the data itself was rejected, by the server or before it could be sent, so that a repeat cannot succeed. */
export function isDataRejected(error: unknown): boolean {
  return error instanceof RangeError || REJECTED.test(sqlState(error) ?? '')
}

/** Whether something is missing that a migration makes or grants. */
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
