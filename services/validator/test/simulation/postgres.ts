/**
 * Models the behavior of Postgres that a client can observe: numbered transactions, snapshots, the change log and its functions
 * (packages/database/migrations), crashes, failovers and restored copies. Every visible state is a version. Versions are numbered
 * in the order in which they became visible, so a state that a crash restores has a new number.
 */

import type { ValidatorDetails } from '@keyward/database'
import { Snapshot } from '@keyward/database/snapshot'
import type { Random } from '@keyward/testkit'

import { firstState, type State, TABLES, type TableName } from './world.ts'

/** An entry of the change log: a row that a transaction changed. */
export interface Entry {
  readonly xid: bigint
  readonly table: TableName
  /** The row's number, or the name of a machine. */
  readonly row: number | string
  /** The organization is null for a machine that was deleted together with its license. */
  readonly organization: number | null
}

export interface Version {
  readonly state: State
  readonly atMs: number
  /** The transaction that produced the version. It is null for the state after a crash, a failover or a restore. */
  readonly xid: bigint | null
}

/** A heartbeat of a validator, with the snapshot that it has published as applied. */
export interface Heartbeat {
  /** The number of the validator. */
  readonly life: number
  readonly applied: string | null
  /** A later snapshot, and the organizations whose changes up to that snapshot are not applied. */
  readonly others: ValidatorDetails['others']
  /** The latest snapshot that the validator has published in the history of this server. */
  readonly published: string | null
  readonly seenMs: number
}

/** The content of the disk after a transaction. */
interface Disk {
  readonly state: State
  readonly log: readonly Entry[]
  /** `feed_state`: the snapshot whose visible entries may have been removed from the log. */
  readonly gone: string
  /** `feed_state`: the number of reloads that have been requested. */
  readonly reloads: number
  /** `feed_state`: the server that has written the log. */
  readonly writtenBy: string
  /** `validators`: the row of the validator. */
  readonly heartbeat: Heartbeat | null
  /** The transaction that wrote this content. */
  readonly xid: bigint
  /** The number of the version. */
  readonly version: number
}

export interface Transaction {
  readonly xid: bigint
  /** Whether the transaction has ended, or a crash has rolled it back. */
  isOver: boolean
}

export interface Reading {
  readonly snapshot: string
  readonly behind: boolean
  /** The organizations that must be read separately. */
  readonly large: readonly number[]
  readonly entries: readonly Pick<Entry, 'table' | 'row'>[]
  readonly state: State
  readonly reloads: number
}

export interface ReadOptions {
  readonly except?: readonly number[]
  readonly also?: readonly Pick<Entry, 'table' | 'row'>[]
  /** Whether the read may return ten times `maxChanges` changes. */
  readonly isLong?: boolean
  /** Whether the read is limited to so few changes that it is fast on a slow server. */
  readonly isShort?: boolean
}

const FIRST_XID = 100n

export class SimulatedPostgres {
  readonly versions: Version[] = []
  /** The version that was current when each snapshot was last taken, by the identity of the server and the snapshot. */
  readonly versionOfSnapshot = new Map<string, number>()
  /** The version that was current when each transaction ended. A transaction number that is used again overwrites the entry. */
  readonly versionOfTransaction = new Map<bigint, number>()
  /** The first version of the current history. Transactions before this version may have been lost. */
  historyStart = 0
  /** The first transaction number that no earlier history has used. */
  firstFreshXid = FIRST_XID
  /** The number of changes above which a read returns the organizations with the most changes instead. */
  maxChanges = 20_000
  /** The number of changes above which a read without `isShort` exceeds its timeout. */
  slowAbove = Infinity
  onCommit: () => void = () => undefined
  /** The time until which connections reach a standby, which cannot be followed. */
  standbyUntilMs = 0
  readonly #nowMs: () => number
  readonly #random: Random
  readonly #open = new Map<bigint, Transaction>()
  #history: Disk[]
  #nextXid = FIRST_XID
  #latestCompleted = FIRST_XID - 1n
  #timeline = 1
  #system = 1
  #runs = 0
  /** The row of the unlogged table `server_run`. It is null after a crash. */
  #run: number | null = null

  constructor(nowMs: () => number, random: Random) {
    this.#nowMs = nowMs
    this.#random = random
    const empty = { log: [], gone: '1:1:', reloads: 0, writtenBy: '', heartbeat: null }
    this.#history = [{ ...empty, state: firstState(), xid: FIRST_XID - 1n, version: 0 }]
    this.#addVersion(null)
  }

  get state(): State {
    return this.#disk.state
  }

  get latest(): number {
    return this.versions.length - 1
  }

  /** Begins a transaction. */
  begin(): Transaction {
    const transaction = { xid: this.#nextXid++, isOver: false }
    this.#open.set(transaction.xid, transaction)
    return transaction
  }

  /** Ends a transaction that has changed no row. */
  end(transaction: Transaction): void {
    this.#complete(transaction)
    this.versionOfTransaction.set(transaction.xid, this.latest)
  }

  /** Commits a transaction whose result is `state`. */
  commit(transaction: Transaction, state: State): void {
    const { xid } = transaction
    const entries = changesBetween(this.state, state, xid)
    if (entries.length === 0) return this.end(transaction)
    this.#complete(transaction)
    this.#write({ ...this.#disk, state, log: [...this.#disk.log, ...entries], xid, version: this.latest + 1 })
    this.#addVersion(xid)
    this.onCommit()
  }

  /** Simulates `pg_current_snapshot()`. */
  snapshot(): string {
    const xmax = this.#latestCompleted + 1n
    const open = this.#openNumbers().filter((xid) => xid < xmax)
    const text = `${open[0] ?? xmax}:${xmax}:${open.join(',')}`
    this.versionOfSnapshot.set(`${this.#identity} ${text}`, this.latest)
    return text
  }

  /** Returns the row of a validator. Only the row of the latest validator is kept. */
  heartbeatOf(life: number): Heartbeat | null {
    const { heartbeat } = this.#disk
    return heartbeat?.life === life ? heartbeat : null
  }

  get reloads(): number {
    return this.#disk.reloads
  }

  /** Simulates `note_validator()`. */
  noteValidator(life: number, snapshot: string | null, { server, others }: Partial<ValidatorDetails>): void {
    if (life < (this.#disk.heartbeat?.life ?? 0)) return
    const isOfHistory = server === this.#identity
    const applied = snapshot === null || isOfHistory ? snapshot : '1:1:'
    const published = (isOfHistory ? snapshot : null) ?? this.heartbeatOf(life)?.published ?? null
    const transaction = this.begin()
    this.#complete(transaction)
    this.#write({
      ...this.#disk,
      heartbeat: { life, applied, others, published, seenMs: this.#nowMs() },
      xid: transaction.xid,
    })
  }

  /** Simulates `open_change_log_with()`. */
  openChangeLog(): string {
    if (this.#nowMs() < this.standbyUntilMs) throw new Error('This server is a standby.')
    if (this.#disk.writtenBy !== this.#place || this.#run === null) {
      this.#run ??= ++this.#runs
      const [home] = this.#disk.writtenBy.split('/')
      if (home !== String(this.#system)) this.#forgetChangeLog()
      this.#write({ ...this.#disk, writtenBy: this.#place })
    }
    return this.#identity
  }

  /** Simulates `void_change_log()`, which requests a reload. */
  voidChangeLog(): void {
    const transaction = this.begin()
    this.end(transaction)
    this.#write({ ...this.#disk, reloads: this.#disk.reloads + 1, xid: transaction.xid })
    this.onCommit()
  }

  /** Simulates `forget_change_log()`. No earlier snapshot covers the snapshot that the function stores in `gone`. */
  #forgetChangeLog(): void {
    const open = this.#openNumbers()
    const transaction = this.begin()
    const { xid } = transaction
    this.#complete(transaction)
    const gone = `${open[0] ?? xid + 1n}:${xid + 1n}:${open.join(',')}`
    this.#write({ ...this.#disk, log: [], gone, xid })
    this.versionOfTransaction.set(xid, this.latest)
  }

  /**
   * Simulates `prune_change_log()`. Removes the entries that are visible in `mark`, the snapshot that an earlier call stored.
   */
  prune(mark: string): void {
    if (!covers(this.snapshot(), mark)) return
    const visible = new Snapshot(mark)
    const { log, gone } = this.#disk
    const transaction = this.begin()
    this.#complete(transaction)
    this.#write({
      ...this.#disk,
      log: log.filter((entry) => !visible.contains(entry.xid)),
      gone: covers(mark, gone) ? mark : gone,
      xid: transaction.xid,
    })
  }

  /** Simulates the statement of `readFeed`. */
  read(since: string, { except = [], also = [], isLong = false, isShort = false }: ReadOptions = {}): Reading {
    const snapshot = this.snapshot()
    const { state, gone, reloads } = this.#disk
    const behind = !covers(since, gone) || !covers(snapshot, since)
    const all = behind ? [] : this.#changedSince(since)
    const isRead = ({ organization }: Entry): boolean =>
      organization === null ? except.length === 0 : !except.includes(organization)
    const entries = behind ? [] : distinct([...all.filter((entry) => isRead(entry)), ...also])
    const maxChanges = isShort ? Math.min(this.maxChanges, this.slowAbove) : this.maxChanges * (isLong ? 10 : 1)
    const reading = { snapshot, behind, large: [], state, reloads }
    if (entries.length <= maxChanges) return { ...reading, entries }
    const large = largestOf(all, maxChanges)
    return { ...reading, behind: large.length === 0, large, entries: [] }
  }

  /** Simulates the statements of `readLargeChange`: reads the changes of these organizations, and those without an organization. */
  readLarge(since: string, organizations: readonly number[]): Reading {
    if (!covers(since, this.#disk.gone)) throw new Error('The change log was pruned before a large change was read.')
    const entries = this.#changedSince(since).filter(
      ({ organization }) => organization === null || organizations.includes(organization),
    )
    return { snapshot: this.snapshot(), behind: false, large: [], entries, state: this.state, reloads: 0 }
  }

  /** Simulates `changes_after()`, without its limit. */
  #changedSince(since: string): readonly Entry[] {
    const [, xmax = '0', open = ''] = since.split(':')
    const wasOpen = new Set(open === '' ? [] : open.split(',').map(BigInt))
    return distinct(this.#disk.log.filter(({ xid }) => xid >= BigInt(xmax) || wasOpen.has(xid)))
  }

  /**
   * Crashes and recovers. The latest `lost` versions and all later writes are lost. Some of the lost transaction numbers are
   * used again. Open transactions are rolled back, and unlogged tables are empty.
   */
  crash(lost: number): void {
    const numbers = [...new Set(this.#history.map(({ version }) => version))]
    const last = numbers[Math.max(0, numbers.length - 1 - lost)]!
    const isKept = lost === 0 ? (): boolean => true : ({ version }: Disk): boolean => version <= last
    this.#history = this.#history.filter(isKept)
    // Some of the latest heartbeats are lost too, because their commits do not wait for the disk.
    for (let i = lost === 0 ? 0 : this.#random.int(4); i > 0 && this.#history.at(-2)?.state === this.state; i--)
      this.#history.pop()
    // Recovery continues after the greatest transaction number on disk.
    const found = this.#history.reduce((most, { xid }) => (xid > most ? xid : most), 0n)
    if (this.#nextXid > this.firstFreshXid) this.firstFreshXid = this.#nextXid
    this.#nextXid = found + 1n + BigInt(this.#random.int(Number(this.#nextXid - found)))
    this.#latestCompleted = this.#nextXid - 1n
    for (const transaction of this.#open.values()) transaction.isOver = true
    this.#open.clear()
    this.#run = null
    this.#history.push({ ...this.#disk, version: this.latest + 1 })
    this.#addVersion(null)
    this.historyStart = this.latest
  }

  /** Simulates a failover to a server that has not received the latest commits. */
  failOver(lost: number): void {
    this.#timeline++
    this.crash(lost)
  }

  /** Restores a dump without the latest versions on a new server, whose transaction numbers start from the beginning. */
  restoreDump(lost: number): void {
    this.crash(lost)
    this.#system++
    this.#nextXid = FIRST_XID
    this.#latestCompleted = FIRST_XID - 1n
    this.#history = [{ ...this.#disk, log: [], gone: '1:1:', heartbeat: null, xid: this.#latestCompleted }]
  }

  get #disk(): Disk {
    return this.#history.at(-1)!
  }

  get #identity(): string {
    return `${this.#place}/${this.#timeline}`
  }

  get #place(): string {
    return `${this.#system}/database/log/${this.#run ?? ''}`
  }

  #write(disk: Disk): void {
    this.#history.push(disk)
  }

  /** Returns the numbers of the open transactions in ascending order. */
  #openNumbers(): bigint[] {
    return [...this.#open.keys()].toSorted((a, b) => (a < b ? -1 : 1))
  }

  #complete(transaction: Transaction): void {
    const { xid } = transaction
    transaction.isOver = true
    this.#open.delete(xid)
    if (xid > this.#latestCompleted) this.#latestCompleted = xid
  }

  #addVersion(xid: bigint | null): void {
    this.versions.push({ state: this.state, atMs: this.#nowMs(), xid })
    if (xid !== null) this.versionOfTransaction.set(xid, this.latest)
  }
}

/** Simulates `snap_covers(a, b)`. Returns whether everything that is visible in `b` is visible in `a`. */
export function covers(a: string, b: string): boolean {
  const [, xmaxA = '0', openA = ''] = a.split(':')
  const [, xmaxB = '0'] = b.split(':')
  const inB = new Snapshot(b)
  return BigInt(xmaxA) >= BigInt(xmaxB) && (openA === '' || !openA.split(',').some((xid) => inB.contains(BigInt(xid))))
}

type Rows = ReadonlyMap<number | string, object>

function changesBetween(before: State, after: State, xid: bigint): Entry[] {
  const entries: Entry[] = []
  for (const table of TABLES) {
    const old: Rows = before[table]
    const current: Rows = after[table]
    for (const [row, value] of current) {
      if (old.get(row) !== value) entries.push({ xid, table, row, organization: organizationOf(after, value) })
    }
    for (const [row, value] of old) {
      if (!current.has(row)) entries.push({ xid, table, row, organization: organizationOf(after, value) })
    }
  }
  return entries
}

function organizationOf(state: State, row: object): number | null {
  if ('organization' in row) return Number(row.organization)
  return 'license' in row ? (state.license.get(Number(row.license))?.organization ?? null) : null
}

/** Returns the organizations with the most changes. All other organizations together have at most half of `maxChanges`. */
function largestOf(entries: readonly Entry[], maxChanges: number): number[] {
  const counts = new Map<number, number>()
  for (const { organization } of entries)
    if (organization !== null) counts.set(organization, (counts.get(organization) ?? 0) + 1)
  let rest = [...counts.values()].reduce((sum, count) => sum + count, 0)
  const large: number[] = []
  for (const [organization, count] of [...counts].toSorted((a, b) => b[1] - a[1])) {
    if (rest <= maxChanges / 2) break
    large.push(organization)
    rest -= count
  }
  return large
}

function distinct<T extends Pick<Entry, 'table' | 'row'>>(entries: readonly T[]): readonly T[] {
  return [...new Map(entries.map((entry) => [`${entry.table} ${entry.row}`, entry])).values()]
}
