/**
 * Publishes that this validator runs, the address of its admin port, and the snapshot that it has applied. A management request
 * with `Prefer: wait` waits until the published snapshots contain its change (docs/api.md#m3). The heartbeat is written after
 * each change, at most once every 20 ms and at least once a second.
 */

import { hostname } from 'node:os'

import { VERSION } from '@keyward/contract/version'
import {
  createPool,
  FEATURES,
  forgetValidator,
  type Id,
  noteValidator,
  uuidv7,
  type ValidatorDetails,
  type ValidatorNote,
} from '@keyward/database'
import { bytesToUuid } from '@keyward/database/ids'

import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'

const BEAT_MS = 1_000
const MIN_INTERVAL_MS = 20

/** The store in which validators publish their state. */
export interface HeartbeatStore {
  note(note: ValidatorNote): Promise<void>
  forget(id: string): Promise<void>
  close(): Promise<void>
}

interface HeartbeatOptions {
  /** The public key with which the validator signs responses. */
  answerKey: string
  isReady: () => boolean
  onError: (error: unknown) => void
  clock?: Clock
}

export class Heartbeat {
  readonly id = uuidv7()
  readonly #store: HeartbeatStore
  readonly #answerKey: string
  readonly #isReady: () => boolean
  readonly #onError: (error: unknown) => void
  readonly #clock: Clock
  /** The snapshot that the next beat publishes, and the identity of its server. They are null before the first load. */
  #applied: { snapshot: string; server: string } | null = null
  /** A later snapshot, and the organizations whose changes up to it are still being applied. They are null when there are no such organizations. */
  #others: ValidatorDetails['others'] | null = null
  /** Cancels the next beat. */
  #cancelBeat: () => void = () => undefined
  /** The time at which the timer fires. It is Infinity while no timer runs. */
  #dueMs = Infinity
  /** The time at which the last beat began. */
  #lastBeatMs = -Infinity
  /** The write in progress, or null. No timer runs during a write. */
  #writing: Promise<void> | null = null
  /** Whether a change was applied during the write in progress. If so, the next beat follows as soon as MIN_INTERVAL_MS allows. */
  #isDirty = false
  #isClosed = false
  #adminUrl = ''

  constructor(store: HeartbeatStore, { answerKey, isReady, onError, clock = SYSTEM_CLOCK }: HeartbeatOptions) {
    this.#store = store
    this.#answerKey = answerKey
    this.#isReady = isReady
    this.#onError = onError
    this.#clock = clock
  }

  /** Starts the beats. `adminUrl` is the address at which management reaches the admin port. */
  start(adminUrl: string): void {
    this.#adminUrl = adminUrl
    this.#schedule(0)
  }

  /** Records that the index contains every change up to `snapshot`. `server` is the identity of its server. */
  applied(snapshot: string, server: string): void {
    const isNew = snapshot !== this.#applied?.snapshot || server !== this.#applied.server
    this.#applied = { snapshot, server }
    this.#others = null
    if (isNew) this.#schedule(this.#minDelayMs)
  }

  /**
   * Records that the index contains every change up to a snapshot, except those of organizations whose large change is being
   * applied.
   */
  appliedExcept(snapshot: string, server: string, organizations: readonly Id[]): void {
    if (server !== this.#applied?.server || snapshot === this.#others?.snapshot) return
    this.#others = { snapshot, except: organizations.map((id) => bytesToUuid(id)) }
    this.#schedule(this.#minDelayMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelBeat()
    await this.#writing
    await this.#store.forget(this.id).catch(this.#onError)
    await this.#store.close()
  }

  /** The time until the next beat may begin, in milliseconds. */
  get #minDelayMs(): number {
    return Math.max(0, this.#lastBeatMs + MIN_INTERVAL_MS - this.#clock.nowMs())
  }

  #schedule(inMs: number): void {
    if (this.#isClosed) return
    if (this.#writing) {
      this.#isDirty ||= inMs < BEAT_MS
      return
    }
    const dueMs = this.#clock.nowMs() + inMs
    if (dueMs >= this.#dueMs) return
    this.#cancelBeat()
    this.#dueMs = dueMs
    this.#cancelBeat = this.#clock.after(inMs, () => {
      this.#writing = this.#beat()
    })
  }

  async #beat(): Promise<void> {
    this.#dueMs = Infinity
    this.#lastBeatMs = this.#clock.nowMs()
    this.#isDirty = false
    await this.#write().catch(this.#onError)
    this.#writing = null
    this.#schedule(this.#isDirty ? this.#minDelayMs : BEAT_MS)
  }

  async #write(): Promise<void> {
    const details: ValidatorDetails = {
      features: FEATURES,
      version: VERSION,
      adminUrl: this.#adminUrl,
      answerKey: this.#answerKey,
      server: this.#applied?.server,
      others: this.#others ?? undefined,
    }
    const applied = this.#applied?.snapshot ?? null
    await this.#store.note({
      id: this.id,
      name: `${hostname()}:${process.pid}`,
      applied,
      ready: this.#isReady(),
      details,
    })
  }
}

/** Publishes the state in Postgres, over a separate connection. */
export class PostgresHeartbeats implements HeartbeatStore {
  readonly #pool: ReturnType<typeof createPool>

  constructor(url: string, onError: (error: unknown) => void) {
    this.#pool = createPool(url, { name: 'keyward validator heartbeat', max: 1, statementTimeoutMs: 1_500, onError })
  }

  note(note: ValidatorNote): Promise<void> {
    return noteValidator(this.#pool, note)
  }

  forget(id: string): Promise<void> {
    return forgetValidator(this.#pool, id)
  }

  close(): Promise<void> {
    return this.#pool.end()
  }
}
