// What validators gather about checks and write about once a second: never an address, never a country. A batch is applied
// exactly once, however often it is sent, and wakes nobody.

import type pg from 'pg'

import type { Id } from '../feed/entities.ts'
import { bytesToUuid } from '../ids.ts'
import { booleanArray, byteaArray, float8Array, integerArray, textArray, uuidArray } from './binary-arrays.ts'

/** Moments are milliseconds since 1970. */
export interface RecordBatch {
  /** Matches of access rules. */
  readonly rules: readonly { readonly id: Id; readonly count: number; readonly lastAtMs: number }[]
  /** Analytics; without a product for a key that does not exist. */
  readonly checks: readonly {
    readonly hourMs: number
    readonly organizationId: Id
    readonly productId: Id | null
    readonly code: string
    readonly count: number
  }[]
  readonly activity: ActivityColumns
}

/**
 * Checks in licenses' activity, coalesced per license, code, machine and minute. Columns, since there are thousands in a
 * flush; entry i is element i of each. Entries of `TOO_MANY_MACHINES` count in the license's alert, too.
 */
export interface ActivityColumns {
  readonly minutesMs: Float64Array
  /** 16 bytes for each. */
  readonly licenseIds: Uint8Array
  /** Each is a place in `codeNames`. */
  readonly codes: Uint8Array
  /** ASCII. */
  readonly codeNames: readonly string[]
  /** Entry i's machine id is `machineBytes` from `machineAt[i]` to `machineAt[i + 1]`; none when that is nothing. */
  readonly machineAt: Int32Array
  readonly machineBytes: Uint8Array
  readonly counts: Int32Array
  readonly firstsMs: Float64Array
  readonly lastsMs: Float64Array
  /** 1: the machine was last seen at the entry's last moment, and that is to be written. */
  readonly seen: Uint8Array
}

/** Rows that one batch writes, of all tables together; more makes a long transaction. */
export const BATCH_ROWS = 1_000
const OVERUSE = 'TOO_MANY_MACHINES'

/**
 * Applies a batch and says whether it was new. `number` rises from batch to batch of a validator; a batch whose answer
 * was lost is sent again, unchanged, under the same number. Rejects with code 55P03 when somebody holds a row for half a
 * second; send it again then, too. Rows whose license, rule, machine or organization is gone are left out.
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
    text: `select write_behind($1::uuid, $2::bigint, $3::jsonb, $4::jsonb, $5::float8[], $6::uuid[], $7::text[], $8::bytea[],
      $9::integer[], $10::float8[], $11::float8[], $12::boolean[]) as applied`,
    values: [
      validatorId,
      number,
      rulesToJson(batch.rules),
      checksToJson(batch.checks),
      float8Array(activity.minutesMs),
      uuidArray(activity.licenseIds),
      textArray(activity.codes, activity.codeNames),
      byteaArray(activity.machineAt, activity.machineBytes),
      integerArray(activity.counts),
      float8Array(activity.firstsMs),
      float8Array(activity.lastsMs),
      booleanArray(activity.seen),
    ],
  })
  return rows[0]?.applied === true ? 'applied' : 'repeated'
}

/** Cuts what was gathered into batches that write at most `BATCH_ROWS` rows each. An empty one yields none. */
export function splitBatch({ rules, checks, activity }: RecordBatch): RecordBatch[] {
  const batches: RecordBatch[] = []
  const done = { rules: 0, checks: 0, activity: 0 }
  while (done.rules < rules.length || done.checks < checks.length || done.activity < activity.counts.length) {
    const nextRules = rules.slice(done.rules, done.rules + BATCH_ROWS)
    const nextChecks = checks.slice(done.checks, done.checks + BATCH_ROWS - nextRules.length)
    const end = endOfRows(activity, done.activity, BATCH_ROWS - nextRules.length - nextChecks.length)
    batches.push({ rules: nextRules, checks: nextChecks, activity: sliceOf(activity, done.activity, end) })
    done.rules += nextRules.length
    done.checks += nextChecks.length
    done.activity = end
  }
  return batches
}

/** How many rows a batch writes at most. */
export function countRows({ rules, checks, activity }: RecordBatch): number {
  let rows = rules.length + checks.length
  for (let entry = 0; entry < activity.counts.length; entry++) rows += rowsOf(activity, entry)
  return rows
}

/** Rows that an entry writes: its own, its machine's, its license's alert. */
function rowsOf({ codes, codeNames, seen }: ActivityColumns, entry: number): number {
  return 1 + (seen[entry] ?? 0) + (codeNames[codes[entry] ?? 0] === OVERUSE ? 1 : 0)
}

/** The entry after the last that fits when entries from `start` on are to write at most `room` rows. */
function endOfRows(activity: ActivityColumns, start: number, room: number): number {
  let end = start
  for (let rows = 0; end < activity.counts.length; end++) {
    rows += rowsOf(activity, end)
    if (rows > room) break
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
