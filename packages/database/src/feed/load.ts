// Loads everything that a verdict depends on, and says from which snapshot the feed goes on: one repeatable-read
// transaction, so that the load and the snapshot are one moment. Rows stream in batches; memory stays bounded.

import { setImmediate as nextTurn } from 'node:timers/promises'

import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'

import { CopyParser } from './copy-decoder.ts'
import type { FeedChange } from './entities.ts'
import { LAST_TABLE, type TableToLoad, TABLES } from './tables.ts'

export interface JoinOptions {
  /** Takes a batch of up to a few thousand changes, all of the snapshot; no more is read before it is done. */
  readonly onBatch: (changes: FeedChange[], snapshot: string) => void | Promise<void>
  /**
   * Hands on rows of every table as they come, which saves the wait for the first. For those who answer nobody from what they
   * have until all is there.
   */
  readonly asItComes?: boolean
  readonly applicationName?: string
  readonly connectTimeoutMs?: number
  /** Gives up when the server is silent for so long. Default 15 s. */
  readonly stallMs?: number
}

export interface Joined {
  /** From here on `readFeed` goes on. */
  readonly snapshot: string
  /** Which server, timeline and change log; when it is another at a later connect, everything must be loaded again. */
  readonly server: string
  readonly rows: number
}

/**
 * Loads over a connection of its own. Have a listener connected before, so that nothing that comes meanwhile waits for
 * the next read. Rejects on a standby, when the connection breaks, and with whatever `onBatch` throws.
 */
export async function joinFeed(url: string, options: JoinOptions): Promise<Joined> {
  const client = new pg.Client({
    connectionString: url,
    application_name: options.applicationName ?? 'keyward join',
    connectionTimeoutMillis: options.connectTimeoutMs ?? 2_000,
    keepAlive: true,
  })
  const stallMs = options.stallMs ?? 15_000
  let broken: Error | undefined
  client.on('error', (error) => void (broken ??= error))
  const watchdog = setTimeout(() => {
    broken ??= new Error(`Postgres was silent for ${stallMs} ms while everything was loaded`)
    client.connection.stream.destroy()
  }, stallMs)
  try {
    await client.connect()
    return await load(client, options, () => watchdog.refresh())
  } catch (error) {
    throw broken ?? error
  } finally {
    clearTimeout(watchdog)
    await client.end().catch(() => undefined)
  }
}

async function load(
  client: pg.Client,
  { onBatch, asItComes = false }: JoinOptions,
  onSign: () => void,
): Promise<Joined> {
  const server = await openChangeLog(client)
  await client.query('begin isolation level repeatable read, read only')
  await client.query(`set local statement_timeout = 0; set local work_mem = '256MB'`)
  const { rows } = await client.query<{ snapshot: string }>('select pg_current_snapshot()::text as snapshot')
  const snapshot = rows[0]?.snapshot ?? ''
  let loaded = 0
  const handOn = async ({ fields, reader }: TableToLoad, chunks: AsyncIterable<Buffer> | Buffer[]): Promise<void> => {
    const parser = new CopyParser(fields)
    const read = reader()
    for await (const chunk of chunks) {
      onSign()
      const batch: FeedChange[] = []
      parser.push(chunk, (row) => batch.push(read(row)))
      loaded += batch.length
      if (batch.length > 0) await onBatch(batch, snapshot)
      await nextTurn()
      onSign()
    }
  }
  // All but the machines is here before any of it is handed on: a network that stalls must not leave a reader that serves
  // meanwhile with the licenses of now and the rules of before.
  const arrived: [TableToLoad, Buffer[]][] = []
  for (const table of TABLES) {
    const chunks = copyOut(client, table, onSign)
    if (!asItComes && table !== LAST_TABLE) {
      arrived.push([table, await gather(chunks)])
      continue
    }
    for (const [before, whole] of arrived.splice(0)) await handOn(before, whole)
    await handOn(table, chunks)
  }
  await client.query('commit')
  return { snapshot, server, rows: loaded }
}

async function gather(chunks: AsyncIterable<Buffer>): Promise<Buffer[]> {
  const all: Buffer[] = []
  for await (const chunk of chunks) all.push(chunk)
  return all
}

async function* copyOut(client: pg.Client, table: TableToLoad, onSign: () => void): AsyncGenerator<Buffer> {
  for await (const chunk of client.query(copyTo(`copy (${table.select}) to stdout (format binary)`))) {
    onSign()
    yield Buffer.from(chunk)
  }
}

const UNDEFINED_FUNCTION = '42883'

/** Names the server and its log; throws on a standby. To be asked on every connect, since the answer may have changed. */
export async function openChangeLog(client: Pick<pg.ClientBase, 'query'>): Promise<string> {
  try {
    const { rows } = await client.query<{ server: string }>('select open_change_log() as server')
    return rows[0]?.server ?? ''
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== UNDEFINED_FUNCTION) throw error
    throw new Error('The database has not been migrated yet', { cause: error })
  }
}
