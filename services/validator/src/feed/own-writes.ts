/**
 * Prevents the change feed from undoing this validator's own claims and releases. A feed read may have begun before the
 * transaction of such a write committed. The read then contains an outdated row of the machine and an outdated slot count of
 * the license. Until the snapshot of a read contains the transaction, the row of the machine is skipped and the slot count is
 * replaced.
 */

import { machineKey, toHex } from '@keyward/database/ids'
import { Snapshot } from '@keyward/database/snapshot'
import type { Change } from '@keyward/engine'

export type MachineChange = Extract<Change, { entity: 'machine' }>

/** A claim or release, with the number of used slots after it. */
export type OwnChange = MachineChange & { used: number }

interface OwnWrite {
  xid: bigint
  licenseId: string
  change: OwnChange
}

function withUsed(change: OwnChange, used: number): OwnChange {
  return { ...change, used }
}

export class OwnWrites {
  /** The writes that no feed read has delivered yet, by license and machine id. */
  readonly #machines = new Map<string, OwnWrite>()
  /** The number of entries in `#machines` (at least 1) and the slot count after the last write, by license. */
  readonly #licenses = new Map<string, { entries: number; used: number }>()

  get size(): number {
    return this.#machines.size
  }

  /** Discards all writes, because the transaction numbers of one server are meaningless on another. */
  clear(): void {
    this.#machines.clear()
    this.#licenses.clear()
  }

  /** Adds a claim or release that this validator made in transaction `xid`. */
  add(change: OwnChange, xid: bigint): void {
    const { licenseId, used } = change
    const license = toHex(licenseId)
    const key = machineKey(licenseId, change.machineId)
    const known = this.#licenses.get(license) ?? { entries: 0, used }
    if (!this.#machines.has(key)) known.entries++
    known.used = used
    this.#licenses.set(license, known)
    this.#machines.set(key, { xid, licenseId: license, change })
  }

  /** Returns the writes that the snapshot does not contain. Without a snapshot, returns all writes that no feed read has delivered yet. */
  since(snapshot: string | null): readonly OwnChange[] {
    const seen = snapshot === null ? null : new Snapshot(snapshot)
    return [...this.#machines.values()]
      .filter(({ xid }) => seen === null || !seen.contains(xid))
      .map(({ licenseId, change }) => withUsed(change, this.#licenses.get(licenseId)?.used ?? change.used))
  }

  /** Returns the changes of a feed read that may be applied, and discards the writes that the snapshot contains. */
  filter(changes: readonly Change[], snapshot: string): readonly Change[] {
    if (this.#machines.size === 0) return changes
    const seen = new Snapshot(snapshot)
    for (const [key, write] of this.#machines) if (seen.contains(write.xid)) this.#forget(key, write)
    if (this.#machines.size === 0) return changes
    return changes.flatMap((change) => this.#filterOne(change))
  }

  #filterOne(change: Change): Change[] {
    if (change.entity === 'machine') {
      const license = toHex(change.licenseId)
      const known = this.#licenses.get(license)
      if (known === undefined) return [change]
      return this.#machines.has(machineKey(change.licenseId, change.machineId)) ? [] : [{ ...change, used: known.used }]
    }
    if (change.entity === 'license' && change.row !== null) {
      const known = this.#licenses.get(toHex(change.id))
      return known === undefined ? [change] : [{ ...change, row: { ...change.row, used: known.used } }]
    }
    return [change]
  }

  #forget(key: string, write: OwnWrite): void {
    this.#machines.delete(key)
    const known = this.#licenses.get(write.licenseId)
    if (known !== undefined && --known.entries === 0) this.#licenses.delete(write.licenseId)
  }
}
