/**
 * Defers the notification of validators until after a commit. Postgres commits notifying transactions one after the other, across the whole
 * server, and each waits for the disk and the synchronous standbys meanwhile. The triggers set `keyward.notification` to `due` instead of
 * notifying (`notify_validators.sql`).
 */

import pg from 'pg'

import { type Query, replaceQuery } from './client-query.ts'

const DUE = 'due'

/** Selects whether the transaction has logged changes for validators. */
export const IS_DUE = `current_setting('keyward.notification') = '${DUE}'`
/** Defers the notification of the transaction. The expression has the value `deferred`. */
export const DEFERRED = `set_config('keyward.notification', 'deferred', true)`

const BEGIN = `begin; set local keyward.notification = 'deferred'`
const COMMIT = `select where ${IS_DUE}; commit`

/** Defers the notifications of every transaction on the connection. `notify` is called after the commit of a transaction that logged changes. */
export function deferNotifications(client: pg.ClientBase, notify: () => void): void {
  const commit = async (query: Query): Promise<unknown> => {
    let isDue = true // also after an error, because the commit may have succeeded
    try {
      const results: unknown = await query(COMMIT)
      const [due, committed] = Array.isArray(results) ? (results as unknown[]) : []
      isDue = due instanceof pg.Result && due.rowCount === 1
      return committed
    } finally {
      if (isDue) notify()
    }
  }
  replaceQuery(client, (query) => (text, ...rest) => {
    if (text === 'commit') return commit(query)
    return query(text === 'begin' ? BEGIN : text, ...rest)
  })
}
