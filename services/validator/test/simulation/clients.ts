/** Simulates the clients of Postgres in a validator: the change feed, claims and releases of slots, and heartbeats. */

import {
  type ClaimAnswer,
  type FeedChange,
  type FeedReading,
  type FeedReadOptions,
  type LargeChange,
  LARGE_CHANGE_PASSES,
  type LargePage,
  MAX_CHANGES,
  type ReleaseAnswer,
  type ValidatorNote,
} from '@keyward/database'

import type { FeedConnection, FeedSource, Load, LoadOutcome, OnBatch } from '../../src/feed/follower.ts'
import type { HeartbeatStore } from '../../src/feed/heartbeat.ts'
import type { Clock } from '../../src/shared/clock.ts'
import type { Claim } from '../../src/slots/claim-queue.ts'
import type { Release } from '../../src/slots/release-queue.ts'
import type { SlotStore } from '../../src/slots/slot-service.ts'
import { type Line, type Network, STATEMENT_TIMEOUT_MS } from './network.ts'
import type { SimulatedPostgres, Transaction } from './postgres.ts'
import { changeOf, entryOf, idOf, loadOf, numberOf } from './rows.ts'
import { draftOf, machineName, type TableName, usedOf } from './world.ts'

/** A read that may return at most this number of changes is fast enough on a slow server. */
const SHORT_READ = 3_000

const TABLE_OF_LETTER = new Map<string, TableName>([
  ['O', 'organization'],
  ['P', 'product'],
  ['U', 'customer'],
  ['C', 'credential'],
  ['L', 'license'],
  ['R', 'rule'],
  ['M', 'machine'],
])

export interface SourceOptions {
  /** The maximum time that a page of a load takes to arrive. */
  readonly pageMs: number
  /** The clock of the validator. */
  readonly clock: Clock
  /** The number of the validator that reads the feed. A restart starts a validator with the next number. */
  readonly life: number
  /** Called when the follower begins to read the changes of these organizations in pages. */
  readonly onPages: (organizations: readonly number[]) => void
}

export class SimulatedSource implements FeedSource {
  readonly #postgres: SimulatedPostgres
  readonly #network: Network
  readonly #options: SourceOptions
  readonly #wakers = new Set<() => void>()
  /** The number of reads of the change log that Postgres has executed. */
  reads = 0

  constructor(postgres: SimulatedPostgres, network: Network, options: SourceOptions) {
    this.#postgres = postgres
    this.#network = network
    this.#options = options
  }

  /** Notifies the listeners that a transaction was committed. */
  notify(): void {
    const { time, random, mutedUntilMs } = this.#network
    if (mutedUntilMs > time.nowMs()) return
    for (const wake of this.#wakers) time.after(random.int(10), () => this.#wakers.has(wake) && wake())
  }

  async connect(onWake: () => void, onLost: () => void): Promise<FeedConnection> {
    const wake = (): void => onWake()
    const line = this.#network.open(() => {
      this.#wakers.delete(wake)
      onLost()
    })
    try {
      await line.query(() => this.#wakers.add(wake))
    } catch (error) {
      this.#wakers.delete(wake)
      line.close()
      throw error
    }
    return {
      identify: () =>
        line.query(() => {
          const identity = this.#postgres.openChangeLog()
          return { identity, published: this.#postgres.heartbeatOf(this.#options.life)?.published ?? null }
        }),
      read: (since, options) => this.#readInTime(line, since, options),
      readLarge: (since, organizations, onPage) => this.#readLarge(since, organizations.map(numberOf), onPage),
      load: (identity, onBatch) => this.#load(identity, onBatch),
      close: () => {
        this.#wakers.delete(wake)
        line.close()
      },
    }
  }

  /** Simulates `readFeed`, and its timeout when Postgres is slow. */
  async #readInTime(line: Line, since: string, options: FeedReadOptions = {}): Promise<FeedReading> {
    const reading = await line.query(() => this.#read(since, options))
    const { maxChanges = MAX_CHANGES } = options
    if (maxChanges <= SHORT_READ || reading.changes.length <= this.#postgres.slowAbove) return reading
    this.#network.tell(`a read of ${reading.changes.length} changes takes too long`)
    this.#network.stall(this.#network.time.nowMs())
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#options.clock.after(STATEMENT_TIMEOUT_MS, resolve)
    await promise
    await line.travel()
    this.#network.stall(this.#network.time.nowMs())
    throw Object.assign(new Error('The statement was canceled.'), { code: '57014' })
  }

  /** Simulates the statement of `readFeed`. */
  #read(since: string, { except = [], also = [], maxChanges = MAX_CHANGES }: FeedReadOptions = {}): FeedReading {
    const reading = this.#postgres.read(since, {
      except: except.map(numberOf),
      also: also.map(entryOf),
      isLong: maxChanges > MAX_CHANGES,
      isShort: maxChanges <= SHORT_READ,
    })
    const { snapshot, behind, entries, state, reloads } = reading
    this.reads++
    if (behind) this.#network.tell(`the log does not contain everything since ${since}`)
    if (also.length > 0) this.#network.tell(`${also.length} other rows are read with the changes since ${since}`)
    const large = reading.large.map((organization) => idOf('organization', organization))
    return { snapshot, behind, large, changes: entries.map((entry) => changeOf(state, entry, false)), reloads }
  }

  /** Simulates `loadFeed`, which uses a separate connection and one snapshot. */
  #load(identity: string, onBatch: OnBatch): Load {
    const line = this.#network.open()
    const load = async (): Promise<LoadOutcome> => {
      try {
        await line.travel()
        const { snapshot, rows, server, reloads } = await line.query(() => {
          const opened = this.#postgres.openChangeLog()
          const { state, reloads: requested } = this.#postgres
          return { server: opened, snapshot: this.#postgres.snapshot(), rows: loadOf(state), reloads: requested }
        })
        this.#network.tell(`a load begins at ${snapshot}`)
        for (const page of this.#pages(rows)) {
          await line.travel(this.#options.pageMs)
          onBatch(page, snapshot)
        }
        await line.query(() => undefined)
        if (server !== identity) throw new Error('Another server responded during the load.')
        return { snapshot, reloads }
      } finally {
        line.close()
      }
    }
    return { done: load(), close: () => line.close() }
  }

  /** Simulates `readLargeChange`. */
  #readLarge(since: string, organizations: readonly number[], onPage: (page: LargePage) => void): LargeChange {
    this.#options.onPages(organizations)
    this.#network.tell(`the changes of organization ${organizations.join(' and ')} are read separately`)
    const line = this.#network.open()
    const read = async (): Promise<string> => {
      try {
        await line.travel()
        const { snapshot, entries, state } = await line.query(() => this.#postgres.readLarge(since, organizations))
        for (const { letter, step, keep } of LARGE_CHANGE_PASSES) {
          const table = TABLE_OF_LETTER.get(letter)
          const changes = entries.filter((entry) => entry.table === table).map((entry) => changeOf(state, entry, false))
          for (const page of this.#pages(changes)) {
            await line.travel(this.#options.pageMs / 4)
            const kept = page.filter((change) => keep(change))
            if (kept.length > 0) onPage({ step, changes: kept, snapshot })
          }
        }
        return snapshot
      } finally {
        line.close()
      }
    }
    return { done: read(), close: () => line.close() }
  }

  /** Divides rows into pages of random lengths, like the chunks of a stream. */
  *#pages(rows: readonly FeedChange[]): Generator<readonly FeedChange[]> {
    for (let from = 0; from < rows.length;) {
      const to = from + 1 + this.#network.random.int(8)
      yield rows.slice(from, to)
      from = to
    }
  }
}

/** Simulates `claim_slots` and `release_slots`. */
export class SimulatedSlots implements SlotStore {
  readonly #postgres: SimulatedPostgres
  readonly #network: Network
  /** The licenses whose slots a transaction has locked. */
  readonly #locked = new Set<number>()

  constructor(postgres: SimulatedPostgres, network: Network) {
    this.#postgres = postgres
    this.#network = network
  }

  isHopeless(): boolean {
    return true
  }

  execute(claims: readonly Claim[]): Promise<ClaimAnswer[]> {
    const licenses = claims.map(({ licenseId }) => numberOf(licenseId))
    return this.#transact(licenses, (transaction, isBusy) => {
      const xid = String(transaction.xid)
      const draft = draftOf(this.#postgres.state)
      const plain = { xid, expiresAtMs: Infinity, leaseSeconds: null }
      const answers = claims.map(({ machineId }, i): ClaimAnswer => {
        const license = licenses[i]!
        const row = draft.license.get(license)
        const answer = (outcome: ClaimAnswer['outcome']): ClaimAnswer => {
          return { outcome, used: usedOf(draft, license), max: row?.max ?? null, ...plain }
        }
        if (isBusy(license)) return { outcome: 'busy', used: null, max: null, ...plain }
        if (row === undefined) return answer('no_license')
        if (row.status !== 'active') return answer(row.status)
        const machine = new TextDecoder().decode(machineId)
        const name = machineName(license, machine)
        if (draft.machine.has(name)) return answer('known')
        if (row.max !== null && usedOf(draft, license) >= row.max) return answer('limit')
        draft.machine.set(name, { license, machine })
        return answer(row.max === null ? 'recorded' : 'granted')
      })
      this.#postgres.commit(transaction, draft)
      return answers
    })
  }

  release(releases: readonly Release[]): Promise<ReleaseAnswer[]> {
    const licenses = releases.map(({ licenseId }) => numberOf(licenseId))
    return this.#transact(licenses, (transaction, isBusy) => {
      const draft = draftOf(this.#postgres.state)
      const answers = releases.map(({ machineId }, i): ReleaseAnswer => {
        const license = licenses[i]!
        if (isBusy(license)) return { outcome: 'busy', used: null, xid: null }
        const isReleased = draft.machine.delete(machineName(license, new TextDecoder().decode(machineId)))
        if (!isReleased) return { outcome: 'unknown', used: null, xid: null }
        return { outcome: 'released', used: usedOf(draft, license), xid: String(transaction.xid) }
      })
      this.#postgres.commit(transaction, draft)
      return answers
    })
  }

  /**
   * Begins a transaction and locks the licenses that no other transaction has locked. Later calls `decide`, which commits the
   * transaction.
   */
  async #transact<T>(
    licenses: readonly number[],
    decide: (transaction: Transaction, isBusy: (license: number) => boolean) => T,
  ): Promise<T> {
    const line = this.#network.open()
    const { time, random } = this.#network
    try {
      await line.travel()
      const transaction = this.#postgres.begin()
      const own = new Set(licenses.filter((license) => !this.#locked.has(license)))
      for (const license of own) this.#locked.add(license)
      await time.sleep(random.int(15))
      for (const license of own) this.#locked.delete(license)
      if (transaction.isOver) throw new Error('The server has crashed.')
      const result = decide(transaction, (license) => !own.has(license))
      await line.travel()
      return result
    } finally {
      line.close()
    }
  }
}

/** Stores heartbeats over separate connections. */
export class SimulatedHeartbeats implements HeartbeatStore {
  readonly #postgres: SimulatedPostgres
  readonly #network: Network
  readonly #life: number

  constructor(postgres: SimulatedPostgres, network: Network, life: number) {
    this.#postgres = postgres
    this.#network = network
    this.#life = life
  }

  async note({ applied, details }: ValidatorNote): Promise<void> {
    const line = this.#network.open()
    try {
      await line.query(() => this.#postgres.noteValidator(this.#life, applied, details))
    } finally {
      line.close()
    }
  }

  forget(): Promise<void> {
    return Promise.resolve()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}
