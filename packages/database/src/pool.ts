// Connections to Postgres. Every pool has time-outs, so that a server that has gone silent never holds a caller, and an
// error handler, so that a connection that breaks while idle does not end the process.

import pg from 'pg'

export interface PoolOptions {
  /** Shown in `pg_stat_activity`. */
  readonly name: string
  readonly max?: number
  /** The server gives up on a statement after this. Default 10 s; 0: never. */
  readonly statementTimeoutMs?: number
  /** The client gives up on an answer after this, should the server not even say so. Default 2 s more than the server. */
  readonly queryTimeoutMs?: number
  /** Default 2 s. */
  readonly connectTimeoutMs?: number
  /** Hears of connections that broke while idle. The pool replaces them by itself. */
  readonly onError?: (error: Error) => void
}

/** Opens nothing yet. `end()` closes it. */
export function createPool(url: string, options: PoolOptions): pg.Pool {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000
  const pool = new pg.Pool({
    connectionString: url,
    application_name: options.name,
    max: options.max ?? 10,
    statement_timeout: statementTimeoutMs,
    query_timeout: options.queryTimeoutMs ?? (statementTimeoutMs === 0 ? 0 : statementTimeoutMs + 2_000),
    connectionTimeoutMillis: options.connectTimeoutMs ?? 2_000,
    idle_in_transaction_session_timeout: 30_000,
    keepAlive: true,
    types,
  })
  pool.on('error', (error) => options.onError?.(error))
  // One that breaks between the statements of a transaction belongs to no idle connection and to no statement; unheard, it
  // would end the process. The next statement of the transaction fails by itself.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** `bigint` arrives as a number: the counts kept in such columns stay far below 2^53. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, parseBigint)

function parseBigint(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`The count ${text} is too large to be exact`)
  return value
}
