// What validators gather about checks and write about once a second: never an address, never a country. A batch is applied
// exactly once, however often it is sent, and wakes nobody.

import type pg from 'pg'

import type { Id } from './feed/changes.ts'
import { bytesToUuid, toHex, toHexEach } from './ids.ts'

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
  /** Checks in a license's activity, coalesced per license, code, machine and minute. */
  readonly activity: readonly {
    readonly minuteMs: number
    readonly licenseId: Id
    readonly code: string
    readonly machineId: Uint8Array | null
    readonly count: number
    readonly firstAtMs: number
    readonly lastAtMs: number
  }[]
  /** When machines were last seen. */
  readonly seen: readonly { readonly licenseId: Id; readonly machineId: Uint8Array; readonly atMs: number }[]
  /** Checks that ended in TOO_MANY_MACHINES. */
  readonly overuse: readonly {
    readonly licenseId: Id
    readonly count: number
    readonly firstAtMs: number
    readonly lastAtMs: number
  }[]
}

/** Rows in one batch, of all lists together; more makes a long transaction. */
export const BATCH_ROWS = 1_000

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
  const { rows } = await client.query<{ applied: boolean }>({
    name: 'keyward-write-behind',
    text: 'select write_behind($1::uuid, $2::bigint, $3::jsonb) as applied',
    values: [validatorId, number, JSON.stringify(toJson(batch))],
  })
  return rows[0]?.applied === true ? 'applied' : 'repeated'
}

/** Cuts what was gathered into batches of at most `BATCH_ROWS` rows. An empty one yields none. */
export function splitBatch(gathered: RecordBatch, most: number = BATCH_ROWS): RecordBatch[] {
  const rows = countRows(gathered)
  return Array.from({ length: Math.ceil(rows / most) }, (_, i) => {
    let skip = i * most
    let room = most
    const take = <T>(list: readonly T[]): readonly T[] => {
      const taken = list.slice(skip, skip + room)
      skip = Math.max(0, skip - list.length)
      room -= taken.length
      return taken
    }
    return {
      rules: take(gathered.rules),
      checks: take(gathered.checks),
      activity: take(gathered.activity),
      seen: take(gathered.seen),
      overuse: take(gathered.overuse),
    }
  })
}

export function countRows(batch: RecordBatch): number {
  return batch.rules.length + batch.checks.length + batch.activity.length + batch.seen.length + batch.overuse.length
}

const NO_BYTES = new Uint8Array(0)

/** Ids go as bare digits, which Postgres reads as well and which are made many at a time. */
function toJson(batch: RecordBatch): object {
  const licenses = toHexEach(batch.activity.map(({ licenseId }) => licenseId))
  const machines = toHexEach(batch.activity.map(({ machineId }) => machineId ?? NO_BYTES))
  return {
    rules: batch.rules.map(({ id, count, lastAtMs: at }) => ({ id: bytesToUuid(id), count, at })),
    checks: batch.checks.map(({ hourMs: hour, organizationId, productId, code, count }) => ({
      hour,
      organization: bytesToUuid(organizationId),
      product: productId === null ? null : bytesToUuid(productId),
      code,
      count,
    })),
    activity: batch.activity.map(({ minuteMs: minute, code, machineId, count, firstAtMs, lastAtMs }, i) => ({
      minute,
      license: licenses[i],
      code,
      machine: machineId === null ? null : machines[i],
      count,
      first: firstAtMs,
      last: lastAtMs,
    })),
    seen: batch.seen.map(({ licenseId, machineId, atMs: at }) => ({
      license: bytesToUuid(licenseId),
      machine: toHex(machineId),
      at,
    })),
    overuse: batch.overuse.map(({ licenseId, count, firstAtMs: first, lastAtMs: last }) => ({
      license: bytesToUuid(licenseId),
      count,
      first,
      last,
    })),
  }
}
