/**
 * Keeps the feed from undoing what this validator has just done. A feed read may have begun before a claim or release of
 * ours was committed, so until a read is known to see our transaction, what it says of that machine, and of how many slots
 * its license has taken, is older than what we know and is left out. The read that does see it brings the truth again.
 */

import { machineKey, toHex } from '@keyward/database/ids'
import type { Change } from '@keyward/engine'

interface Entry {
  xid: bigint
  licenseId: string
  used: number
}

/** Postgres's text of a snapshot, `xmin:xmax:xip,xip`. */
export function parseSnapshot(text: string): (xid: bigint) => boolean {
  const [xmin = '0', xmax = '0', running = ''] = text.split(':')
  const min = BigInt(xmin)
  const max = BigInt(xmax)
  const open = new Set(running === '' ? [] : running.split(',').map(BigInt))
  return (xid) => xid < min || (xid < max && !open.has(xid))
}

export class Pending {
  readonly #machines = new Map<string, Entry>()
  /** How many entries each license has, and the count of its slots that we know. */
  readonly #licenses = new Map<string, { entries: number; used: number }>()

  get size(): number {
    return this.#machines.size
  }

  /** Another server answers: transaction numbers of the one before mean nothing there. */
  clear(): void {
    this.#machines.clear()
    this.#licenses.clear()
  }

  /** A claim or release of this validator that `xid` has committed. */
  add(licenseId: Uint8Array, machineId: Uint8Array, xid: bigint, used: number): void {
    const license = toHex(licenseId)
    const key = machineKey(licenseId, machineId)
    const known = this.#licenses.get(license) ?? { entries: 0, used }
    if (!this.#machines.has(key)) known.entries++
    known.used = used
    this.#licenses.set(license, known)
    this.#machines.set(key, { xid, licenseId: license, used })
  }

  /** What of a feed read may be applied. Forgets what the read's snapshot sees: of that it tells the truth. */
  filter(changes: readonly Change[], snapshot: string): readonly Change[] {
    if (this.#machines.size === 0) return changes
    const sees = parseSnapshot(snapshot)
    for (const [key, entry] of this.#machines) if (sees(entry.xid)) this.#forget(key, entry)
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

  #forget(key: string, entry: Entry): void {
    this.#machines.delete(key)
    const known = this.#licenses.get(entry.licenseId)
    if (known !== undefined && --known.entries === 0) this.#licenses.delete(entry.licenseId)
  }
}
