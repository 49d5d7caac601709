/**
 * Records which rows the latest changes affected. After a crash, a failover or a restore, the server may lack the latest transactions that this
 * validator has applied. The follower then reads these rows again, together with the changes since the end of the common history, and the index
 * equals Postgres. Without this record, every validator would have to compare all rows after each failover. Until the end of the comparison it
 * would apply no change and not be ready, at the same time as all others.
 */

import type { RowId } from '@keyward/database'
import { Snapshot } from '@keyward/database/snapshot'
import type { Change } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'

/** The maximum number of rows, which take about 20 MB. They usually cover the last few minutes. */
const MAX_ROWS = 100_000

interface Segment {
  /** The snapshot of the read that delivered the changes. */
  readonly snapshot: Snapshot
  readonly rows: readonly RowId[]
}

export class RecentChanges {
  readonly #maxRows: number
  /** The segments in the order in which they were applied. */
  #segments: Segment[] = []
  /** This validator's own claims and releases, with the numbers of their transactions. */
  #own: { xid: bigint; row: RowId }[] = []
  /** The greatest transaction number that was removed from `#own`. */
  #forgottenOwn = -1n
  #size = 0
  /** A snapshot that contains every change that was applied before the first segment. It is null when no such snapshot is known. */
  #start: Snapshot | null = null

  constructor(maxRows = MAX_ROWS) {
    this.#maxRows = maxRows
  }

  /** Discards all changes. `snapshot` is the state that the index contains, or null when it is unknown. */
  restart(snapshot: string | null): void {
    this.#segments = []
    this.#own = []
    this.#forgottenOwn = -1n
    this.#size = 0
    this.#start = snapshot === null ? null : new Snapshot(snapshot)
  }

  /** Records the changes that a read delivered. */
  add(changes: readonly Change[], signingKeys: readonly SigningKeyChange[], snapshot: string): void {
    const rows = this.#start === null ? [] : [...changes.map(rowOf), ...signingKeys.map(rowOfKey)]
    if (rows.length === 0) return
    this.#segments.push({ snapshot: new Snapshot(snapshot), rows })
    this.#size += rows.length
    while (this.#size > this.#maxRows) this.#forgetFirst()
  }

  /** Records a claim or release that this validator made in transaction `xid`. */
  addOwn(change: Change, xid: bigint): void {
    if (this.#start === null) return
    this.#own.push({ xid, row: rowOf(change) })
    if (this.#own.length <= this.#maxRows) return
    for (const { xid: forgotten } of this.#own.splice(0, this.#maxRows / 2)) {
      if (forgotten > this.#forgottenOwn) this.#forgottenOwn = forgotten
    }
  }

  /**
   * Returns the rows whose changes were applied and are not visible in `published`, or null when they are unknown. `published`
   * is a snapshot that this validator has published. The histories of the validator and the server are equal up to `published`.
   */
  since(published: string): RowId[] | null {
    const common = new Snapshot(published)
    if (this.#start === null || !common.covers(this.#start) || common.xmin <= this.#forgottenOwn) return null
    const rows = this.#own.flatMap(({ xid, row }) => (common.contains(xid) ? [] : [row]))
    for (const segment of this.#segments) {
      if (!common.covers(segment.snapshot)) for (const row of segment.rows) rows.push(row)
    }
    return rows
  }

  #forgetFirst(): void {
    const [first] = this.#segments.splice(0, 1)
    if (first === undefined) return
    this.#size -= first.rows.length
    this.#start = first.snapshot
  }
}

/** Returns the row of a change. The copies do not keep the buffer of the read alive. */
export function rowOf(change: Change): RowId {
  if (change.entity !== 'machine') return { entity: change.entity, id: Uint8Array.from(change.id), machineId: null }
  const { entity, licenseId, machineId } = change
  return { entity, id: Uint8Array.from(licenseId), machineId: Uint8Array.from(machineId) }
}

function rowOfKey({ id }: SigningKeyChange): RowId {
  return { entity: 'signingKey', id: Uint8Array.from(id), machineId: null }
}
