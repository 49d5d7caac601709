/**
 * Loads all rows that verdicts depend on, and returns the snapshot from which `readFeed` continues (docs/api.md#p1).
 * The load is one repeatable-read transaction, so all rows are of that snapshot. Rows arrive in batches, so memory is
 * bounded.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'

import type pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'

import { type ColumnReader, columnsOf } from './columns.ts'
import { CopyDecoder } from './copy-decoder.ts'
import {
  ACCESS_RULE,
  CREDENTIAL,
  CUSTOMER,
  type ENTITIES,
  type FeedChange,
  LICENSE,
  ORGANIZATION,
  PRODUCT,
  readLoadedMachine,
  SIGNING_KEY,
} from './entities.ts'
import { openChangeLog } from './history.ts'
import { type LongReadOptions, readOverOwnConnection } from './long-read.ts'

export interface LoadOptions extends LongReadOptions {
  /**
   * Receives a batch of up to 256 changes of the snapshot. The next batch is read after the call has returned or its promise has
   * resolved.
   */
  readonly onBatch: (changes: FeedChange[], snapshot: string) => void | Promise<void>
}

export interface LoadedFeed {
  /** The snapshot from which `readFeed` continues. */
  readonly snapshot: string
  /** The identity of the server, its timeline and its change log (`openChangeLog`). */
  readonly server: string
  readonly rows: number
  /** The number of reloads that had been requested at the snapshot. */
  readonly reloads: number
}

interface Step {
  readonly select: string
  readonly fields: number
  readonly read: (columns: ColumnReader) => FeedChange
}

type Loadable = (typeof ENTITIES)[number]

function step({ columns, from, where, read }: Loadable): Step {
  const list = columns.map(({ sql }) => sql).join(', ')
  return { select: `select ${list} from ${from} where ${where}`, fields: columns.length, read }
}

/** `license_slots` is not joined, because machines are by far the largest table and the join would take most of the load's time. */
const MACHINES: Step = {
  select: 'select license_id, machine_id from machines',
  fields: columnsOf(readLoadedMachine).length,
  read: readLoadedMachine,
}

/** The steps of a load. Rows come before the rows that refer to them. */
const STEPS: readonly Step[] = [
  step(ORGANIZATION),
  step(PRODUCT),
  step(CUSTOMER),
  step(CREDENTIAL),
  step(SIGNING_KEY),
  step(LICENSE),
  step(ACCESS_RULE),
  MACHINES,
]

/**
 * Loads over a separate connection. Connect a listener first, so that no change waits for the next poll. Rejects on a
 * standby, when the connection breaks, and with an error that `onBatch` throws.
 */
export function loadFeed(url: string, options: LoadOptions): Promise<LoadedFeed> {
  return readOverOwnConnection(
    url,
    { applicationName: 'keyward load', stallMs: 15_000, ...options },
    (client, onProgress) => load(client, options, onProgress),
  )
}

async function load(client: pg.Client, { onBatch }: LoadOptions, onProgress: () => void): Promise<LoadedFeed> {
  const server = await openChangeLog(client)
  await client.query('begin isolation level repeatable read, read only')
  await client.query(`set local statement_timeout = 0; set local work_mem = '256MB'`)
  const { rows } = await client.query<{ snapshot: string; reloads: string }>(
    'select pg_current_snapshot()::text as snapshot, reloads from feed_state',
  )
  const { snapshot = '', reloads = '0' } = rows[0] ?? {}
  let loaded = 0
  const deliver = async ({ select, fields, read }: Step): Promise<void> => {
    const decoder = new CopyDecoder(read, fields)
    const chunks: AsyncIterable<Buffer> = client.query(copyTo(`copy (${select}) to stdout (format binary)`))
    for await (const chunk of chunks) {
      onProgress()
      for (const batch of decoder.push(chunk)) {
        loaded += batch.length
        await onBatch(batch, snapshot)
      }
      await nextTurn()
      onProgress()
    }
  }
  for (const table of STEPS) await deliver(table)
  await client.query('commit')
  return { snapshot, server, rows: loaded, reloads: Number(reloads) }
}
