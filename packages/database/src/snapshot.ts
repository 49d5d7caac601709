/**
 * A snapshot of Postgres in the text form of `pg_snapshot`, `xmin:xmax:xip,xip`. It determines which transactions are visible, so validators
 * use it as a position in the change log. The numbers of two servers are not comparable.
 */
export class Snapshot {
  readonly text: string
  /** Every transaction below this number is visible. */
  readonly xmin: bigint
  /** Transactions with this number or a greater one are invisible. */
  readonly #xmax: bigint
  /** The transactions below `#xmax` that are also invisible. */
  readonly #running: ReadonlySet<bigint>

  constructor(text: string) {
    const [xmin = '0', xmax = '0', running = ''] = text.split(':')
    this.text = text
    this.xmin = BigInt(xmin)
    this.#xmax = BigInt(xmax)
    this.#running = new Set(running === '' ? [] : running.split(',').map(BigInt))
  }

  /** Returns whether the transaction is visible. */
  contains(xid: bigint): boolean {
    return xid < this.xmin || (xid < this.#xmax && !this.#running.has(xid))
  }

  /** Returns whether every transaction that is visible in `other` is visible in this snapshot. */
  covers(other: Snapshot): boolean {
    for (const xid of this.#running) if (other.contains(xid)) return false
    // Transactions that have begun since this snapshot must all be invisible in `other` as well.
    const begunSince = [...other.#running].filter((xid) => xid >= this.#xmax).length
    return other.#xmax <= this.#xmax || BigInt(begunSince) === other.#xmax - this.#xmax
  }
}
