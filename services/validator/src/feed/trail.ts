/**
 * Records which rows the latest changes affected. After a crash, a failover or a restore, the server may lack the latest
 * transactions that this validator has applied. The rows of lost transactions are suspects. The follower reads the suspects
 * again, together with the changes since the end of the common history, and the index then equals Postgres.
 */

import type { Suspect } from '@keyward/database'
import { Snapshot } from '@keyward/database/snapshot'
import type { Change } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'

/** The maximum number of suspects, which take about 20 MB. They usually cover the last few minutes. */
const MAX_SUSPECTS = 100_000

interface Segment {
  /** The snapshot of the read that delivered the changes. */
  readonly snapshot: Snapshot
  readonly suspects: readonly Suspect[]
}

export class Trail {
  readonly #maxSuspects: number
  /** The segments in the order in which they were applied. */
  #segments: Segment[] = []
  /** This validator's own claims and releases, with the numbers of their transactions. */
  #own: { xid: bigint; suspect: Suspect }[] = []
  /** The greatest transaction number that was removed from `#own`. */
  #forgottenOwn = -1n
  #size = 0
  /** A snapshot that contains every change that was applied before the first segment. It is null when no such snapshot is known. */
  #start: Snapshot | null = null

  constructor(maxSuspects = MAX_SUSPECTS) {
    this.#maxSuspects = maxSuspects
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
    const suspects = this.#start === null ? [] : [...changes.map(suspectOf), ...signingKeys.map(suspectKey)]
    if (suspects.length === 0) return
    this.#segments.push({ snapshot: new Snapshot(snapshot), suspects })
    this.#size += suspects.length
    while (this.#size > this.#maxSuspects) this.#forgetFirst()
  }

  /** Records a claim or release that this validator made in transaction `xid`. */
  addOwn(change: Change, xid: bigint): void {
    if (this.#start === null) return
    this.#own.push({ xid, suspect: suspectOf(change) })
    if (this.#own.length <= this.#maxSuspects) return
    for (const { xid: forgotten } of this.#own.splice(0, this.#maxSuspects / 2)) {
      if (forgotten > this.#forgottenOwn) this.#forgottenOwn = forgotten
    }
  }

  /**
   * Returns the rows whose changes were applied and are not visible in `landmark`, or null when they are unknown. `landmark`
   * is a snapshot that this validator has published. The histories of the validator and the server are equal up to `landmark`.
   */
  since(landmark: string): Suspect[] | null {
    const common = new Snapshot(landmark)
    if (this.#start === null || !common.covers(this.#start) || common.xmin <= this.#forgottenOwn) return null
    const suspects = this.#own.flatMap(({ xid, suspect }) => (common.contains(xid) ? [] : [suspect]))
    for (const segment of this.#segments) {
      if (!common.covers(segment.snapshot)) for (const suspect of segment.suspects) suspects.push(suspect)
    }
    return suspects
  }

  #forgetFirst(): void {
    const [first] = this.#segments.splice(0, 1)
    if (first === undefined) return
    this.#size -= first.suspects.length
    this.#start = first.snapshot
  }
}

/** Returns the row of a change as a suspect. */
export function suspectOf(change: Change): Suspect {
  if (change.entity !== 'machine') return { entity: change.entity, id: Uint8Array.from(change.id), machineId: null }
  const { entity, licenseId, machineId } = change
  return { entity, id: Uint8Array.from(licenseId), machineId: Uint8Array.from(machineId) }
}

function suspectKey({ id }: SigningKeyChange): Suspect {
  return { entity: 'signingKey', id: Uint8Array.from(id), machineId: null }
}
