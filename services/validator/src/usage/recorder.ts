/**
 * Records usage: reads the workers' rings every 50 ms, aggregates the checks, and writes the sums about once a second
 * (docs/api.md#d5). During a Postgres outage it continues to aggregate within fixed limits. `close` writes the remaining usage.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { ClaimAnswer } from '@keyward/database'
import { type IndexReader, openIndex, type SharedIndex } from '@keyward/engine'

import type { Claim } from '../slots/claim-queue.ts'
import { Aggregator, type Dropped } from './aggregator.ts'
import { Flusher } from './flusher.ts'
import { KeyUses } from './key-uses.ts'
import { type Machine, NewMachines } from './new-machines.ts'
import { createRing, type RecordView, RingReader } from './ring.ts'
import { SeenMachines } from './seen-machines.ts'

const DRAIN_MS = 50
/** The maximum number of records of a ring that one turn of the event loop reads, so that a flood of checks does not delay claims. */
const RECORDS_PER_TURN = 2_000
/** The limits of the aggregator. One organization alone may use half of each limit except `seen`. */
const LIMITS = { valid: 4_000, machines: 4_000, licenses: 4_000, entries: 12_000, seen: 1_000, hostnames: 1_000 }
/** The time for which `close` retries. */
const CLOSE_MS = 5_000
const CLOSE_RETRY_MS = 50

interface RecorderOptions {
  url: string
  validatorId: string
  index: SharedIndex
  /** The interval between two flushes of usage. */
  flushMs: number
  /**
   * Records machines of licenses without a machine limit in Postgres. If `waits` is true, the statement waits for locked
   * licenses.
   */
  recordMachines: (claims: readonly Claim[], waits: boolean) => Promise<ClaimAnswer[]>
  /** Receives the result for each recorded machine. */
  onMachine: (claim: Claim, result: ClaimAnswer) => void
  onError: (error: unknown) => void
}

export interface RecorderStatus {
  /** The number of rows that wait to be written. */
  readonly waiting: number
  /**
   * The number of entries that were dropped since the start because the memory for usage was full, by the part of the usage. An entry of
   * `rules` is a match of a rule. Every other entry is a check.
   */
  readonly dropped: Readonly<Dropped & Record<'machines', number>>
  /** The number of batches that Postgres has rejected permanently since the start. */
  readonly rejectedBatches: number
  /** The time that the main thread has spent on reading the rings and on aggregation since the start. */
  readonly busyMs: number
}

export class Recorder {
  readonly #options: RecorderOptions
  /** The ring of each running worker, by the shared memory of the ring. */
  readonly #rings = new Map<SharedArrayBuffer, RingReader>()
  readonly #aggregator: Aggregator
  readonly #seenMachines = new SeenMachines()
  readonly #newMachines: NewMachines
  readonly #keyUses = new KeyUses()
  readonly #flusher: Flusher
  readonly #ids: IndexReader
  readonly #timers: NodeJS.Timeout[] = []
  /** Whether the next turn of the event loop continues to read the rings. */
  #isDraining = false
  #rejectedBatches = 0
  #busyMs = 0

  constructor(options: RecorderOptions) {
    this.#options = options
    this.#ids = openIndex(options.index)
    this.#aggregator = new Aggregator(this.#ids, LIMITS)
    this.#newMachines = new NewMachines(options)
    this.#flusher = new Flusher(options.url, options.validatorId, {
      onError: options.onError,
      onRejected: () => this.#rejectedBatches++,
    })
  }

  get status(): RecorderStatus {
    const waiting = this.#aggregator.rows + this.#flusher.rows
    const dropped = { ...this.#aggregator.dropped, machines: this.#newMachines.dropped }
    return { waiting, dropped, rejectedBatches: this.#rejectedBatches, busyMs: this.#busyMs }
  }

  /** Creates a ring for a new worker. Returns its shared memory. */
  addRing(): SharedArrayBuffer {
    const shared = createRing()
    this.#rings.set(shared, new RingReader(shared))
    return shared
  }

  /** Reads the remaining records of a ring and removes the ring. Call this method after the ring's worker has ended. */
  removeRing(shared: SharedArrayBuffer): void {
    this.#rings.get(shared)?.drain((record) => this.#add(record))
    this.#rings.delete(shared)
  }

  /** Records the use of the API key with this row and generation in the index. */
  keyUsed(row: number, generation: number, atMs: number): void {
    const id = new Uint8Array(16)
    if (this.#ids.credentialId(row, generation, id)) this.#keyUses.add(id, atMs)
  }

  start(): void {
    this.#timers.push(setInterval(() => this.#drainInTurns(), DRAIN_MS))
    this.#timers.push(setInterval(() => void this.#flush(), this.#options.flushMs))
  }

  /**
   * Writes the given machines immediately if they wait to be recorded, so that they can be released. Returns the machines that
   * could not be written. Never rejects.
   */
  async recordNow<M extends Machine>(machines: readonly M[]): Promise<M[]> {
    this.#drain()
    await this.#newMachines.writeNow(machines).catch(this.#options.onError)
    return machines.filter(({ licenseId, machineId }) => this.#newMachines.isWaiting(licenseId, machineId))
  }

  /** Writes all usage, with retries for up to 5 seconds. */
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
      this.#options.onError(new Error(`${this.status.waiting} rows of usage could not be written before the stop.`))
    await this.#flusher.close()
  }

  get #hasMore(): boolean {
    return (
      !this.#flusher.isIdle || this.#aggregator.rows > 0 || this.#keyUses.waiting > 0 || this.#newMachines.waiting > 0
    )
  }

  /** Reads the rings. Leaves the rest of a ring with many records to the next turns of the event loop. */
  #drainInTurns(): void {
    if (this.#isDraining) return
    this.#isDraining = this.#drain(RECORDS_PER_TURN)
    if (!this.#isDraining) return
    setImmediate(() => {
      this.#isDraining = false
      this.#drainInTurns()
    })
  }

  /** Reads at most `most` records of each ring. Returns whether a ring may contain more. */
  #drain(most = Infinity): boolean {
    const startMs = performance.now()
    let hasMore = false
    for (const ring of this.#rings.values()) if (ring.drain((record) => this.#add(record), most) >= most) hasMore = true
    this.#busyMs += performance.now() - startMs
    return hasMore
  }

  #add(record: RecordView): void {
    if (record.isNewMachine && !this.#newMachines.refuses(record.organization)) {
      const licenseId = new Uint8Array(16)
      const { bytes, machineAt, machineLength } = record
      const machineId = bytes.subarray(machineAt, machineAt + machineLength)
      if (this.#ids.licenseId(record.license, record.licenseGeneration, licenseId))
        this.#newMachines.add(record.organization, licenseId, machineId, record.hostname)
    }
    this.#aggregator.add(record)
  }

  async #flush(): Promise<void> {
    const recording = this.#newMachines.flush().catch(this.#options.onError)
    // A batch that is not confirmed yet must be sent again unchanged, so new usage waits for the next batch.
    if (this.#flusher.isIdle) {
      const startMs = performance.now()
      const usage = this.#aggregator.take((activity, entry) => this.#seenMachines.isDue(activity, entry))
      this.#flusher.add({ ...usage, keyUses: this.#keyUses.take() })
      this.#busyMs += performance.now() - startMs
    }
    await Promise.all([recording, this.#flusher.flush()])
  }
}
