/**
 * Writes the usage that validators aggregate, about once a second (docs/api.md#d5). Usage never contains an address or
 * a country (docs/api.md#d1). A batch is applied exactly once, however often it is sent, and does not notify
 * validators.
 */

import type pg from 'pg'

import type { Id } from '../feed/entities.ts'
import { bytesToUuid, toHex } from '../ids.ts'

/** Usage to write. Times are milliseconds since 1970. */
export interface RecordBatch {
  /** Matches of access rules. */
  readonly rules: readonly { readonly id: Id; readonly count: number; readonly lastAtMs: number }[]
  /** Analytics. The product is null for an unknown key. */
  readonly checks: readonly {
    readonly hourMs: number
    readonly organizationId: Id
    readonly productId: Id | null
    readonly code: string
    readonly count: number
  }[]
  readonly activity: ActivityColumns
  /** Checks with the code `TOO_MANY_MACHINES`, by license. They raise the license's alert (docs/api.md#d4). */
  readonly overuse: readonly {
    readonly licenseId: Id
    readonly count: number
    readonly firstAtMs: number
    readonly lastAtMs: number
  }[]
  /** The last use of API keys. */
  readonly keyUses: readonly { readonly id: Id; readonly atMs: number }[]
  /** Hostnames to store for machines that have no hostname yet. */
  readonly hostnames: readonly { readonly licenseId: Id; readonly machineId: Uint8Array; readonly hostname: string }[]
}

/**
 * Checks, aggregated per license, code, machine and minute (docs/api.md#d3). Entry i consists of element i of each
 * column. Columns are used instead of objects, because a flush has thousands of entries. They are sent as text: arrays in the binary format
 * of Postgres saved about 0.6 ms per batch of 500 entries, on a thread that answers no checks.
 */
export interface ActivityColumns {
  readonly minutesMs: Float64Array
  /** 16 bytes per entry. */
  readonly licenseIds: Uint8Array
  /** Indexes into `codeNames`. */
  readonly codes: Uint8Array
  /** The names of the codes, in ASCII. */
  readonly codeNames: readonly string[]
  /**
   * The machine id of entry i is `machineBytes` from `machineAt[i]` to `machineAt[i + 1]`. The id is empty if the checks had no machine id.
   */
  readonly machineAt: Int32Array
  readonly machineBytes: Uint8Array
  readonly counts: Int32Array
  readonly firstsMs: Float64Array
  readonly lastsMs: Float64Array
  /** Contains 1 for an entry whose last time is written as the machine's last-seen time, otherwise 0. */
  readonly seen: Uint8Array
}

/**
 * The maximum number of rows that one batch writes, in all tables together. It bounds the duration of the transaction.
 */
export const BATCH_ROWS = 1_000

/**
 * Applies a batch and returns whether it was new. `number` increases with each batch of a validator. Rejects with SQLSTATE 55P03 when a row
 * stays locked for half a second. If it rejects or the response is lost, send the same batch again under the same number. Rows whose
 * license, rule, machine or organization was deleted are skipped.
 */
export async function writeBehind(
  client: Pick<pg.ClientBase, 'query'>,
  validatorId: string,
  number: number,
  batch: RecordBatch,
): Promise<'applied' | 'repeated'> {
  const { activity } = batch
  const { rows } = await client.query<{ applied: boolean }>({
    name: 'keyward-write-behind',
    text: `select write_usage($1::uuid, $2::bigint, $3::jsonb, $4::jsonb, $5::jsonb, $6::jsonb, $7::jsonb, $8::float8[],
      $9::uuid[], $10::text[], $11::bytea[], $12::integer[], $13::float8[], $14::float8[], $15::boolean[]) as applied`,
    values: [
      validatorId,
      number,
      rulesToJson(batch.rules),
      checksToJson(batch.checks),
      overuseToJson(batch.overuse),
      JSON.stringify(batch.keyUses.map(({ id, atMs: at }) => ({ id: bytesToUuid(id), at }))),
      hostnamesToJson(batch.hostnames),
      Array.from(activity.minutesMs),
      Array.from(activity.counts, (_, entry) => toHex(activity.licenseIds.subarray(entry * 16, entry * 16 + 16))),
      Array.from(activity.codes, (code) => activity.codeNames[code]),
      Array.from(activity.counts, (_, entry) => machineOf(activity, entry)),
      Array.from(activity.counts),
      Array.from(activity.firstsMs),
      Array.from(activity.lastsMs),
      Array.from(activity.seen, Boolean),
    ],
  })
  return rows[0]?.applied === true ? 'applied' : 'repeated'
}

/** Returns the machine id of an entry, or null without a machine id. The driver sends a Buffer as `bytea`. */
function machineOf({ machineAt, machineBytes }: ActivityColumns, entry: number): Buffer | null {
  const [start = 0, end = 0] = machineAt.subarray(entry, entry + 2)
  return start === end ? null : Buffer.from(machineBytes.buffer, machineBytes.byteOffset + start, end - start)
}

/** Splits a batch into batches that write at most `BATCH_ROWS` rows each. An empty batch yields no batches. */
export function splitBatch(batch: RecordBatch): RecordBatch[] {
  const batches: RecordBatch[] = []
  const done = { rules: 0, checks: 0, overuse: 0, keyUses: 0, hostnames: 0, activity: 0 }
  for (let left = countRows(batch); left > 0;) {
    let capacity = BATCH_ROWS
    const next = <Row>(list: Exclude<keyof RecordBatch, 'activity'>, all: readonly Row[]): readonly Row[] => {
      const rows = all.slice(done[list], done[list] + capacity)
      done[list] += rows.length
      capacity -= rows.length
      return rows
    }
    const lists = {
      rules: next('rules', batch.rules),
      checks: next('checks', batch.checks),
      overuse: next('overuse', batch.overuse),
      keyUses: next('keyUses', batch.keyUses),
      hostnames: next('hostnames', batch.hostnames),
    }
    const end = endOfRows(batch.activity, done.activity, capacity)
    const part = { ...lists, activity: sliceOf(batch.activity, done.activity, end) }
    done.activity = end
    left -= countRows(part)
    batches.push(part)
  }
  return batches
}

/** Returns the maximum number of rows that a batch writes. */
export function countRows({ activity, rules, checks, overuse, keyUses, hostnames }: RecordBatch): number {
  let rows = rules.length + checks.length + overuse.length + keyUses.length + hostnames.length
  for (let entry = 0; entry < activity.counts.length; entry++) rows += rowsOf(activity, entry)
  return rows
}

/** Returns the number of rows that an entry writes: its own row, and the row of its machine if `seen` is 1. */
function rowsOf({ seen }: ActivityColumns, entry: number): number {
  return 1 + (seen[entry] ?? 0)
}

/** Returns the end of the entries that start at `start` and write at most `capacity` rows. */
function endOfRows(activity: ActivityColumns, start: number, capacity: number): number {
  let end = start
  for (let rows = 0; end < activity.counts.length; end++) {
    rows += rowsOf(activity, end)
    if (rows > capacity) break
  }
  return end
}

function sliceOf(activity: ActivityColumns, start: number, end: number): ActivityColumns {
  return {
    minutesMs: activity.minutesMs.subarray(start, end),
    licenseIds: activity.licenseIds.subarray(start * 16, end * 16),
    codes: activity.codes.subarray(start, end),
    codeNames: activity.codeNames,
    machineAt: activity.machineAt.subarray(start, end + 1),
    machineBytes: activity.machineBytes,
    counts: activity.counts.subarray(start, end),
    firstsMs: activity.firstsMs.subarray(start, end),
    lastsMs: activity.lastsMs.subarray(start, end),
    seen: activity.seen.subarray(start, end),
  }
}

function rulesToJson(rules: RecordBatch['rules']): string {
  return JSON.stringify(rules.map(({ id, count, lastAtMs: at }) => ({ id: bytesToUuid(id), count, at })))
}

function overuseToJson(overuse: RecordBatch['overuse']): string {
  return JSON.stringify(
    overuse.map(({ licenseId, count, firstAtMs: first, lastAtMs: last }) => ({
      license: bytesToUuid(licenseId),
      count,
      first,
      last,
    })),
  )
}

function hostnamesToJson(hostnames: RecordBatch['hostnames']): string {
  return JSON.stringify(
    hostnames.map(({ licenseId, machineId, hostname }) => ({
      license: bytesToUuid(licenseId),
      machine: toHex(machineId),
      hostname: hostname.replaceAll('\0', ''), // Postgres text cannot contain NUL
    })),
  )
}

function checksToJson(checks: RecordBatch['checks']): string {
  return JSON.stringify(
    checks.map(({ hourMs: hour, organizationId, productId, code, count }) => ({
      hour,
      organization: bytesToUuid(organizationId),
      product: productId === null ? null : bytesToUuid(productId),
      code,
      count,
    })),
  )
}
