/**
 * Creates pools of connections to Postgres. Every pool has timeouts, so that an unresponsive server never blocks a caller.
 * Its error handler keeps the process alive when an idle connection breaks.
 */

import pg from 'pg'

import { deferNotifications } from './deferred-notification.ts'
import { connectionTo } from './hosts.ts'
import { Sessions } from './sessions.ts'
import { StatementNames } from './statement-names.ts'

export interface PoolOptions {
  /** The name of the connections in `pg_stat_activity`. */
  readonly name: string
  readonly max?: number
  /** The time after which the server cancels a statement: 10 s by default, and never with 0. */
  readonly statementTimeoutMs?: number
  /** The time after which the client stops waiting for a statement, by default 2 s more than the server's timeout. */
  readonly queryTimeoutMs?: number
  /** The time after which an attempt to connect fails, by default 2 s. */
  readonly connectTimeoutMs?: number
  /** The time after which an idle connection is closed: 10 s by default, and never with 0. */
  readonly idleTimeoutMs?: number
  /** Whether the pool prepares its statements (`StatementNames`). A pooler in transaction mode may not support it. */
  readonly preparesStatements?: boolean
  /** Whether a connection sends a statement before the response to the previous one has arrived (`runPipelined`). */
  readonly pipelines?: boolean
  /** Called after the commit of a transaction that has logged changes for validators. Such a transaction does not notify them itself. */
  readonly notify?: () => void
  /** Receives the errors of connections that broke while idle. The pool replaces these connections. */
  readonly onError?: (error: Error) => void
}

const DEFAULT_MAX = 10

/**
 * Returns a pool without opening a connection. `end()` closes it. `url` may contain several hosts (`connectionTo`). A query rejects if a
 * synchronous standby has not confirmed its commit (`Sessions`).
 */
export function createPool(url: string, options: PoolOptions): pg.Pool {
  const statementTimeoutMs = options.statementTimeoutMs ?? 10_000
  const max = options.max ?? DEFAULT_MAX
  const sessions = new Sessions(max)
  // The pool awaits the promise of `onConnect`, although its type declares none.
  const names = options.preparesStatements === true ? new StatementNames() : undefined
  const onConnect = async (client: pg.ClientBase): Promise<void> => {
    await sessions.open(client, () => pool.totalCount)
    if (options.notify) deferNotifications(client, options.notify)
    names?.use(client)
  }
  const hooks = { onConnect }
  const pool: pg.Pool = new pg.Pool({
    ...connectionTo(url),
    application_name: options.name,
    max,
    statement_timeout: statementTimeoutMs,
    query_timeout: options.queryTimeoutMs ?? (statementTimeoutMs === 0 ? 0 : statementTimeoutMs + 2_000),
    connectionTimeoutMillis: options.connectTimeoutMs ?? 2_000,
    idleTimeoutMillis: options.idleTimeoutMs ?? 10_000,
    idle_in_transaction_session_timeout: 30_000,
    keepAlive: true,
    pipeline: options.pipelines ?? false,
    types,
    ...hooks,
  })
  pool.on('error', (error) => options.onError?.(error))
  // An error between two statements of a transaction belongs neither to an idle connection nor to a statement. Without a handler
  // it would end the process. The next statement of the transaction fails anyway.
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** Parses `bigint` as a number, because the counts in such columns stay far below 2^53. */
const types = new pg.TypeOverrides()
types.setTypeParser(pg.types.builtins.INT8, parseBigint)

function parseBigint(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value)) throw new RangeError(`The count ${text} is too large to be exact`)
  return value
}
