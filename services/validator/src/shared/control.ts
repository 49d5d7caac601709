/**
 * What the main thread tells its workers at once, without a message: whether checks may be answered, whether Postgres is
 * heard, and how far the public keys have come. One writer (main), read at every request.
 */

/** `loading`: no index yet. `stale`: Postgres has been silent for longer than the index may be trusted. */
export const STATES = ['loading', 'serving', 'stale'] as const
export type State = (typeof STATES)[number]

const STATE = 0
const DATABASE = 1
const STOPPING = 2
const KEYS = 3

export class Control {
  readonly shared: SharedArrayBuffer
  readonly #words: Int32Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(64)) {
    this.shared = shared
    this.#words = new Int32Array(shared)
  }

  get state(): State {
    return STATES[Atomics.load(this.#words, STATE)] ?? 'loading'
  }

  set state(state: State) {
    Atomics.store(this.#words, STATE, STATES.indexOf(state))
  }

  /** Asked at every request, as is `isStopping`: a plain read, which is at most a few requests late and costs no call. */
  get isServing(): boolean {
    return this.#words[STATE] === 1
  }

  /** False while Postgres does not answer: nothing is verified again until it does. */
  get databaseHeard(): boolean {
    return Atomics.load(this.#words, DATABASE) === 1
  }

  set databaseHeard(heard: boolean) {
    Atomics.store(this.#words, DATABASE, heard ? 1 : 0)
  }

  /** The number of the last change of a public key: workers read what they were told until they have it. */
  get keysVersion(): number {
    return Atomics.load(this.#words, KEYS)
  }

  set keysVersion(version: number) {
    Atomics.store(this.#words, KEYS, version)
  }

  /** Set when the program stops: every answer then closes its connection. */
  get isStopping(): boolean {
    return this.#words[STOPPING] === 1
  }

  stop(): void {
    Atomics.store(this.#words, STOPPING, 1)
  }
}
