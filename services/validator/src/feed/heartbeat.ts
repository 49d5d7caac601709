/**
 * Tells the others that this validator lives and what it has applied, so that who has made a change can wait for it. Written
 * at once after each change, but at most every 20 ms, and once a second in any case.
 */

import { hostname } from 'node:os'

import { createPool, forgetValidator, noteValidator, uuidv7 } from '@keyward/database'

const BEAT_MS = 1_000
const SOONEST_MS = 20

export class Heartbeat {
  readonly id = uuidv7()
  readonly #pool: ReturnType<typeof createPool>
  readonly #isReady: () => boolean
  readonly #onError: (error: unknown) => void
  #snapshot: string | null = null
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> | null = null
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

  /** The index holds everything that the snapshot sees. */
  applied(snapshot: string): void {
    const isNew = snapshot !== this.#snapshot
    this.#snapshot = snapshot
    if (isNew) this.#schedule(this.#soonestMs)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    if (this.#timer) clearTimeout(this.#timer)
    await this.#writing
    await forgetValidator(this.#pool, this.id).catch(this.#onError)
    await this.#pool.end()
  }

  #dueMs = Infinity
  #beatenMs = -Infinity

  /** In how many milliseconds the next one may begin. */
  get #soonestMs(): number {
    return Math.max(0, this.#beatenMs + SOONEST_MS - performance.now())
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
    this.#beatenMs = performance.now()
    this.#isDirty = false
    await this.#write().catch(this.#onError)
    this.#writing = null
    this.#schedule(this.#isDirty ? this.#soonestMs : BEAT_MS)
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
