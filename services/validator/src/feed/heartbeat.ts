/**
 * Publishes that this validator runs and which snapshot it has applied, so that a management request with `Prefer: wait` can
 * wait for it (docs/api.md#m3). It writes at once after each change, at most every 20 ms, and at least once a second.
 */

import { hostname } from 'node:os'

import { createPool, forgetValidator, noteValidator, uuidv7 } from '@keyward/database'

const BEAT_MS = 1_000
const MIN_INTERVAL_MS = 20

export class Heartbeat {
  readonly id = uuidv7()
  readonly #pool: ReturnType<typeof createPool>
  readonly #isReady: () => boolean
  readonly #onError: (error: unknown) => void
  /** What the next beat publishes. Null before the first load. */
  #snapshot: string | null = null
  #timer: NodeJS.Timeout | null = null
  /** When the timer fires. Infinity while no timer runs. */
  #dueMs = Infinity
  /** When the last beat began. */
  #lastBeatMs = -Infinity
  /** The write in progress. Null between writes; no timer runs during one. */
  #writing: Promise<void> | null = null
  /** A change was applied during the write in progress: the next beat follows as soon as allowed. */
  #isDirty = false
  #isClosed = false

  constructor(url: string, isReady: () => boolean, onError: (error: unknown) => void) {
    this.#pool = createPool(url, { name: 'keyward validator heartbeat', max: 1, statementTimeoutMs: 1_500, onError })
    this.#isReady = isReady
    this.#onError = onError
  }

  start(): void {
    this.#schedule(0)
  }

  /** Records that the index contains everything up to the snapshot. */
  applied(snapshot: string): void {
    const isNew = snapshot !== this.#snapshot
    this.#snapshot = snapshot
    if (isNew) this.#schedule(this.#minDelayMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer) clearTimeout(this.#timer)
    await this.#writing
    await forgetValidator(this.#pool, this.id).catch(this.#onError)
    await this.#pool.end()
  }

  /** In how many milliseconds the next beat may begin. */
  get #minDelayMs(): number {
    return Math.max(0, this.#lastBeatMs + MIN_INTERVAL_MS - performance.now())
  }

  #schedule(inMs: number): void {
    if (this.#isClosed) return
    if (this.#writing) {
      this.#isDirty ||= inMs < BEAT_MS
      return
    }
    const dueMs = performance.now() + inMs
    if (dueMs >= this.#dueMs) return
    if (this.#timer) clearTimeout(this.#timer)
    this.#dueMs = dueMs
    this.#timer = setTimeout(() => {
      this.#writing = this.#beat()
    }, inMs)
  }

  async #beat(): Promise<void> {
    this.#dueMs = Infinity
    this.#lastBeatMs = performance.now()
    this.#isDirty = false
    await this.#write().catch(this.#onError)
    this.#writing = null
    this.#schedule(this.#isDirty ? this.#minDelayMs : BEAT_MS)
  }

  async #write(): Promise<void> {
    await noteValidator(this.#pool, {
      id: this.id,
      name: `${hostname()}:${process.pid}`,
      applied: this.#snapshot,
      ready: this.#isReady(),
      // Since this version validators read single columns (migration 0013).
      details: { readsColumns: true },
    })
  }
}
