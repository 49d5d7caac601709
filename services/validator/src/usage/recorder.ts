/**
 * Reads the workers' rings several times a second, merges what they hold, and writes it about once a second. While the
 * database is away the merging goes on within its bounds. On close everything that was gathered is written.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { ClaimAnswer } from '@keyward/database'
import { openIndex, type SharedIndex } from '@keyward/engine'

import type { Claim } from '../slots/claim-queue.ts'
import { type Dropped, Gathered, type Names } from './aggregator.ts'
import { Flusher } from './flusher.ts'
import { NewMachines } from './new-machines.ts'
import { createRing, type RecordView, RingReader } from './ring.ts'
import { SeenMachines } from './seen-machines.ts'

const DRAIN_MS = 50
const FLUSH_MS = 1_000
const LIMITS = { valid: 2_000, machines: 4_000, entries: 6_000, seen: 1_000 }
/** How long a stop goes on trying to write what was gathered. */
const CLOSE_MS = 5_000
const CLOSE_RETRY_MS = 50

export interface RecordKeeperOptions {
  url: string
  validatorId: string
  index: SharedIndex
  /** Records machines of licenses without a limit. */
  record: (claims: readonly Claim[]) => Promise<ClaimAnswer[]>
  note: (claim: Claim, answer: ClaimAnswer) => void
  onError: (error: unknown) => void
}

export interface RecordsStanding {
  /** Rows. */
  readonly waiting: number
  /** Checks left out for want of room, by what they are missing from. A machine comes again with its next check. */
  readonly dropped: Readonly<Dropped & Record<'machines', number>>
  /** Batches that Postgres would never take. */
  readonly refusedBatches: number
}

export class RecordKeeper {
  readonly #options: RecordKeeperOptions
  readonly #rings = new Map<SharedArrayBuffer, RingReader>()
  readonly #gathered: Gathered
  readonly #seen = new SeenMachines()
  readonly #newMachines: NewMachines
  readonly #flusher: Flusher
  readonly #names: Names
  readonly #timers: NodeJS.Timeout[] = []
  #refused = 0
  #recording: Promise<void> | null = null

  constructor(options: RecordKeeperOptions) {
    this.#options = options
    this.#names = openIndex(options.index)
    this.#gathered = new Gathered(this.#names, LIMITS)
    this.#newMachines = new NewMachines(options)
    this.#flusher = new Flusher(options.url, options.validatorId, {
      onError: options.onError,
      onGivenUp: () => this.#refused++,
    })
  }

  /** What waits to be written, and what was lost since the start. */
  get standing(): RecordsStanding {
    const waiting = this.#gathered.rows + this.#flusher.rows
    const dropped = { ...this.#gathered.dropped, machines: this.#newMachines.dropped }
    return { waiting, dropped, refusedBatches: this.#refused }
  }

  addRing(): SharedArrayBuffer {
    const shared = createRing()
    this.#rings.set(shared, new RingReader(shared))
    return shared
  }

  /** The ring's worker has ended: what it still holds is taken. */
  removeRing(shared: SharedArrayBuffer): void {
    this.#rings.get(shared)?.drain((record) => this.#take(record))
    this.#rings.delete(shared)
  }

  start(): void {
    this.#timers.push(setInterval(() => this.#drain(), DRAIN_MS))
    this.#timers.push(setInterval(() => void this.#flush(), FLUSH_MS))
  }

  /** Records a machine now that would be recorded behind, since it is to be released; false when that could not be done. */
  async recordNow(licenseId: Uint8Array, machineId: Uint8Array): Promise<boolean> {
    this.#drain()
    if (this.#newMachines.isWaiting(licenseId, machineId)) await this.#recordMachines()
    return !this.#newMachines.isWaiting(licenseId, machineId)
  }

  async close(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.#drain()
    const untilMs = performance.now() + CLOSE_MS
    await this.#flush()
    while (this.#hasMore && performance.now() < untilMs) {
      await sleep(CLOSE_RETRY_MS)
      await this.#flush()
    }
    if (this.#hasMore)
      this.#options.onError(new Error(`${this.standing.waiting} rows of records could not be written before the stop.`))
    await this.#flusher.close()
  }

  get #hasMore(): boolean {
    return !this.#flusher.isIdle || this.#gathered.rows > 0 || this.#newMachines.waiting > 0
  }

  #drain(): void {
    for (const ring of this.#rings.values()) ring.drain((record) => this.#take(record))
  }

  #take(record: RecordView): void {
    if (record.isNewMachine) {
      const licenseId = new Uint8Array(16)
      const { bytes, machineAt, machineLength } = record
      const machineId = bytes.slice(machineAt, machineAt + machineLength)
      if (this.#names.licenseId(record.license, record.licenseGeneration, licenseId))
        this.#newMachines.add(licenseId, machineId, record.hostname)
    }
    this.#gathered.add(record)
  }

  /** One flush at a time: the one that runs takes along what is added while it does. */
  #recordMachines(): Promise<void> {
    this.#recording ??= this.#newMachines
      .flush()
      .catch(this.#options.onError)
      .finally(() => {
        this.#recording = null
      })
    return this.#recording
  }

  async #flush(): Promise<void> {
    const recording = this.#recordMachines()
    // What could not be written yet stays as it is: it must be sent again unchanged.
    if (this.#flusher.isIdle)
      this.#flusher.add(this.#gathered.take((activity, entry) => this.#seen.isDue(activity, entry)))
    await Promise.all([recording, this.#flusher.flush()])
  }
}
