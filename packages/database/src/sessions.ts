/**
 * Bounds the sessions that a pool occupies on a server, and rejects commits that are not replicated. While a synchronous standby is
 * missing, a commit waits on the server without a limit. No timeout of the server ends this wait, and the session does not notice that its
 * client has gone. The pool must not cancel the wait either, because the transaction would then be visible without being replicated. So a
 * session whose client has given up is counted until the server has ended it.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import pg from 'pg'

import { type Query, replaceQuery } from './client-query.ts'
import { isQueryTimeout } from './errors.ts'

/** The time for which a refused connection occupies its place in the pool. It limits the rate of attempts. */
const REFUSAL_MS = 250
/** The timeout of BEGIN, to which a responsive server responds at once. */
const BEGIN_TIMEOUT_MS = 2_000
/** The function of Postgres that waits for synchronous standbys. It sends a warning when the wait is canceled. */
const SYNC_WAIT = 'SyncRepWaitForLSN'

/** Selects the sessions of this login and application name that still wait for a standby. */
const WAITING = `
  select pid from pg_stat_get_activity(null)
  where pid = any ($1::integer[]) and wait_event = 'SyncRep' and application_name = current_setting('application_name')`

type Callback = (error: unknown, result?: unknown) => void

/**
 * Reports that the server canceled a commit's wait for the synchronous standbys. The transaction is committed on the primary, but a
 * failover may lose it.
 */
class NotReplicated extends Error {
  /** The SQLSTATE of a canceled query. */
  readonly code = '57014'

  constructor() {
    super('The wait for the synchronous standbys was canceled, so a failover may lose the commit')
  }
}

/** Reports that the pool refuses a connection, because sessions of former connections still occupy the server. */
class SessionsOccupied extends Error {
  /** The SQLSTATE of too many connections. */
  readonly code = '53300'

  constructor(count: number) {
    super(`${count} sessions of this pool still wait on the server, most likely for a synchronous standby`)
  }
}

export class Sessions {
  readonly #max: number
  /** The process ids of the sessions whose clients have given up. */
  readonly #abandoned = new Set<number>()

  /** `max` is the maximum number of sessions on the server, apart from those that are being refused. */
  constructor(max: number) {
    this.#max = max
  }

  /**
   * Prepares a new connection. `count` returns the number of connections of the pool, including this one. Rejects with
   * SessionsOccupied when too many sessions of former connections still wait on the server.
   */
  async open(client: pg.ClientBase, count: () => number): Promise<void> {
    if (!(client instanceof pg.Client)) return
    if (this.#abandoned.size > 0) await this.#forgetEnded(client)
    if (this.#abandoned.size > 0 && this.#abandoned.size + count() > this.#max) {
      await sleep(REFUSAL_MS)
      throw new SessionsOccupied(this.#abandoned.size)
    }
    this.#watch(client)
  }

  /** Forgets the sessions that the server has ended, and the sessions of another server. */
  async #forgetEnded(client: pg.Client): Promise<void> {
    const { rows } = await client.query<{ pid: number }>(WAITING, [[...this.#abandoned]])
    const waiting = new Set(rows.map(({ pid }) => pid))
    for (const pid of this.#abandoned) if (!waiting.has(pid)) this.#abandoned.delete(pid)
  }

  /** Makes a statement reject when its commit is not replicated, and closes the connection after a query timeout. */
  #watch(client: pg.Client): void {
    let isUnreplicated = false
    client.on('notice', ({ routine }) => {
      if (routine === SYNC_WAIT) isUnreplicated = true
    })
    const failure = (error: unknown): unknown => {
      if (isQueryTimeout(error)) {
        if ('processID' in client && typeof client.processID === 'number') this.#abandoned.add(client.processID)
        // The next statement of this connection would wait for the same response until its own timeout.
        client.connection.stream.destroy()
      }
      const isCanceled = isUnreplicated
      isUnreplicated = false
      return (error ?? null) === null && isCanceled ? new NotReplicated() : error
    }
    replaceQuery(
      client,
      (query) =>
        (...args) =>
          run(query, args, failure),
    )
  }
}

/**
 * Runs a statement in the callback form or the promise form of the driver. A statement in another form is passed to the driver unchanged.
 */
function run(query: Query, [first, ...rest]: unknown[], failure: (error: unknown) => unknown): unknown {
  const isBegin = typeof first === 'string' && first.startsWith('begin')
  const text = isBegin ? { text: first, query_timeout: BEGIN_TIMEOUT_MS } : first
  const last = rest.at(-1)
  if (isCallback(last)) {
    const callback: Callback = (error, result) => {
      const found = failure(error)
      last(found, (found ?? null) === null ? result : undefined)
    }
    return query(text, ...rest.slice(0, -1), callback)
  }
  const result = query(text, ...rest)
  if (!(result instanceof Promise)) return result
  return result.then(
    (value: unknown) => {
      const error = failure(null)
      if (error !== null) throw error
      return value
    },
    (error: unknown) => {
      throw failure(error)
    },
  )
}

function isCallback(value: unknown): value is Callback {
  return typeof value === 'function'
}
