/**
 * Waits until the index contains everything that a snapshot of Postgres contains. Each call makes the follower read,
 * immediately or after the read in progress. All waiting callers share the reads.
 */

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'

/**
 * The number of reads that a caller may need. The read in progress may be older than the caller's snapshot, but the next read
 * is not.
 */
const MAX_READS = 2

interface Waiting {
  snapshot: string
  /** The organization whose changes the caller needs, as a UUID. */
  organizationId: string
  /** The number of reads that have ended since the call. */
  reads: number
  resolve: (isCovered: boolean) => void
}

export class CatchUp {
  readonly #readNow: () => void
  readonly #clock: Clock
  readonly #waiting = new Set<Waiting>()
  /** The snapshot of the last load or read, or null before the first load. */
  #applied: string | null = null
  /** A later snapshot that is applied for all organizations except those in `except`, or null. */
  #others: { snapshot: string; except: readonly string[] } | null = null

  /** `readNow` makes the follower read, immediately or after the read in progress. */
  constructor(readNow: () => void, clock: Clock = SYSTEM_CLOCK) {
    this.#readNow = readNow
    this.#clock = clock
  }

  /** Records that the index contains every change up to the snapshot. */
  caughtUp(snapshot: string): void {
    this.#applied = snapshot
    this.#others = null
    this.#settle()
  }

  /** Records that the index contains every change up to the snapshot, except those of the organizations `except`. */
  caughtUpExcept(snapshot: string, except: readonly string[]): void {
    this.#others = { snapshot, except }
    this.#settle()
  }

  #settle(): void {
    let isReadNeeded = false
    for (const waiting of this.#waiting) {
      if (this.#isCovered(waiting)) waiting.resolve(true)
      else isReadNeeded ||= ++waiting.reads < MAX_READS
    }
    if (isReadNeeded) this.#readNow()
  }

  /**
   * Resolves to true when the index contains every change of the organization that is visible in the snapshot, or to false after `limitMs`.
   * `snapshot` is the text of `pg_current_snapshot()`.
   */
  async until(snapshot: string, organizationId: string, limitMs: number): Promise<boolean> {
    if (this.#isCovered({ snapshot, organizationId })) return true
    const { promise, resolve } = Promise.withResolvers<boolean>()
    const waiting = { snapshot, organizationId, reads: 0, resolve }
    const cancel = this.#clock.after(limitMs, () => resolve(false))
    this.#waiting.add(waiting)
    this.#readNow()
    const isCovered = await promise
    cancel()
    this.#waiting.delete(waiting)
    return isCovered
  }

  #isCovered({ snapshot, organizationId }: Pick<Waiting, 'snapshot' | 'organizationId'>): boolean {
    if (this.#applied !== null && covers(this.#applied, snapshot)) return true
    const others = this.#others
    return others !== null && !others.except.includes(organizationId) && covers(others.snapshot, snapshot)
  }
}

interface Snapshot {
  /** Transactions with this number or a greater one are invisible. */
  xmax: bigint
  /** The transactions below `xmax` that are also invisible. */
  running: Set<bigint>
}

function parse(text: string): Snapshot {
  const [, xmax = '0', running = ''] = text.split(':')
  return { xmax: BigInt(xmax), running: new Set(running === '' ? [] : running.split(',').map(BigInt)) }
}

/** Returns whether every transaction that is visible in the snapshot `wanted` is visible in `applied`. */
export function covers(applied: string, wanted: string): boolean {
  const have = parse(applied)
  const need = parse(wanted)
  for (const xid of have.running) if (xid < need.xmax && !need.running.has(xid)) return false
  // Transactions that have begun since `applied` must all be invisible in `wanted` as well.
  const begunSince = [...need.running].filter((xid) => xid >= have.xmax).length
  return need.xmax <= have.xmax || BigInt(begunSince) === need.xmax - have.xmax
}
