/**
 * Reads the changes of organizations that have too many changes for one read. The changes are read in pages over a separate connection, in
 * one repeatable-read transaction. So all pages have the same snapshot, and memory is bounded.
 *
 * A consumer can apply each page immediately. Pages restrict before they change licenses one by one, and loosen after that. So no check
 * that is rejected both before the first and after the last page is `VALID` between two pages.
 */

import { setImmediate as nextTurn } from 'node:timers/promises'

import type pg from 'pg'

import { bytesToUuid } from '../ids.ts'
import {
  ACCESS_RULE,
  CREDENTIAL,
  CUSTOMER,
  ENTITIES,
  type FeedChange,
  type Id,
  LICENSE,
  MACHINE_LETTER,
  ORGANIZATION,
  PRODUCT,
  SIGNING_KEY,
} from './entities.ts'
import { type LongReadOptions, readOverOwnConnection } from './long-read.ts'
import { branch, type LogRow, MACHINES, readRows } from './read.ts'

export interface LargePage {
  /**
   * `restrict`: write only the restricting part of each change. `apply`: write the changes. `loosen`: write the changes, and remove rules
   * that `restrict` kept in force. `finish`: remove all remaining rules that `restrict` kept in force, then write the changes.
   */
  readonly step: 'restrict' | 'apply' | 'loosen' | 'finish'
  readonly changes: FeedChange[]
  /** The snapshot of all pages. */
  readonly snapshot: string
}

export interface LargeChangeOptions extends LongReadOptions {
  /** The snapshot up to which the consumer has applied the changes of the organizations. */
  readonly since: string
  readonly organizations: readonly Id[]
  /** Receives a page. The next page is read after the call returns. */
  readonly onPage: (page: LargePage) => void
}

const PAGE_ROWS = 1_000

type Keep = (change: FeedChange) => boolean

const isRemoval: Keep = (change) => (change.entity === 'machine' ? !change.held : change.row === null)
const isPresent: Keep = (change) => !isRemoval(change)
const all: Keep = () => true

/** The passes of a read in order, with the entity that each reads. */
export const LARGE_CHANGE_PASSES: readonly { letter: string; step: LargePage['step']; keep: Keep }[] = [
  { letter: ORGANIZATION.letter, step: 'apply', keep: isPresent },
  { letter: PRODUCT.letter, step: 'apply', keep: isPresent },
  { letter: CUSTOMER.letter, step: 'apply', keep: isPresent },
  { letter: CREDENTIAL.letter, step: 'restrict', keep: all },
  // A new license counts as revoked until the rules that refer to it are written.
  { letter: LICENSE.letter, step: 'restrict', keep: isPresent },
  { letter: ACCESS_RULE.letter, step: 'restrict', keep: all },
  { letter: MACHINE_LETTER, step: 'restrict', keep: isRemoval },
  { letter: LICENSE.letter, step: 'apply', keep: all },
  { letter: ACCESS_RULE.letter, step: 'loosen', keep: all },
  { letter: CREDENTIAL.letter, step: 'loosen', keep: all },
  { letter: MACHINE_LETTER, step: 'apply', keep: all },
  { letter: SIGNING_KEY.letter, step: 'apply', keep: all },
  { letter: CUSTOMER.letter, step: 'finish', keep: isRemoval },
  { letter: PRODUCT.letter, step: 'finish', keep: isRemoval },
  { letter: ORGANIZATION.letter, step: 'finish', keep: isRemoval },
]

/** A read in progress. */
export interface LargeChange {
  /**
   * Resolves to the snapshot of the pages when all pages were delivered. Rejects when the connection breaks or `close` is
   * called.
   */
  readonly done: Promise<string>
  close(): void
}

/** Starts the read. `done` also rejects with an error that `onPage` throws. */
export function readLargeChange(url: string, options: LargeChangeOptions): LargeChange {
  const closing = new AbortController()
  const done = readOverOwnConnection(
    url,
    // The server needs time to select the changes.
    { applicationName: 'keyward large change', stallMs: 60_000, ...options, signal: closing.signal },
    (client, onProgress) => readPages(client, options, onProgress),
  )
  return { done, close: () => closing.abort(new Error('The read of a large change was closed')) }
}

async function readPages(
  client: pg.Client,
  { since, organizations, onPage }: LargeChangeOptions,
  onProgress: () => void,
): Promise<string> {
  const ids = organizations.map((id) => bytesToUuid(id)).join(',')
  // Postgres accepts no parameters in the declaration of a cursor.
  const from = `${client.escapeLiteral(since)}::pg_snapshot`
  const log = `(select distinct entity, id, machine_id, organization_id from change_log
    where xid >= pg_snapshot_xmax(${from}) or xid = any (array(select pg_snapshot_xip(${from})))) entries`
  const isOfOrganizations = `(organization_id = any (${client.escapeLiteral(`{${ids}}`)}::uuid[]) or organization_id is null)`
  await client.query('begin isolation level repeatable read, read only')
  await client.query('set local statement_timeout = 0; set local enable_seqscan = off')
  const { rows: heads } = await client.query<{ snapshot: string; complete: boolean; letters: string[] | null }>(
    `select pg_current_snapshot()::text as snapshot,
       (select snap_covers(${from}, gone) from feed_state) as complete,
       (select array_agg(distinct entity::text) from ${log} where ${isOfOrganizations}) as letters`,
  )
  const { snapshot = '', complete, letters } = heads[0] ?? {}
  if (complete !== true) throw new Error('The change log was pruned before a large change was read')
  for (const { letter, step, keep } of LARGE_CHANGE_PASSES) {
    if (!letters?.includes(letter)) continue
    const entity = ENTITIES.find((one) => one.letter === letter)
    await client.query(`declare page no scroll cursor for with changed as materialized (
      select entity, id, machine_id from ${log} where entity = '${letter}' and ${isOfOrganizations}
    ) ${entity === undefined ? MACHINES : branch(entity)}`)
    for (;;) {
      const { rows } = await client.query<LogRow>(`fetch ${PAGE_ROWS} from page`)
      onProgress()
      if (rows.length === 0) break
      const changes = readRows(rows).filter(keep)
      if (changes.length > 0) onPage({ step, changes, snapshot })
      await nextTurn()
    }
    await client.query('close page')
  }
  await client.query('commit')
  return snapshot
}
