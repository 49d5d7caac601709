/**
 * State that the main thread publishes to its workers in shared memory: whether checks may be decided, whether Postgres is
 * reachable, and the version of the public keys. The main thread is the only writer; workers read it at every request.
 */

/** `loading`: there is no index yet. `stale`: the last contact with Postgres is too long ago to trust the index. */
export const STATES = ['loading', 'serving', 'stale'] as const
export type State = (typeof STATES)[number]

const SERVING = STATES.indexOf('serving')

// Words of the shared memory.
const STATE = 0
const DATABASE = 1
const STOPPING = 2
const PUBLIC_KEYS = 3

export class Control {
  readonly shared: SharedArrayBuffer
  readonly #words: Int32Array

  constructor(shared: SharedArrayBuffer = new SharedArrayBuffer(64)) {
    this.shared = shared
    this.#words = new Int32Array(shared)
  }

  get state(): State {
    return STATES[Atomics.load(this.#words, STATE)]!
  }

  set state(state: State) {
    Atomics.store(this.#words, STATE, STATES.indexOf(state))
  }

  /** Whether checks may be decided. Like `isStopping`, a plain read: at most a few requests late, and without a call. */
  get isServing(): boolean {
    return this.#words[STATE] === SERVING
  }

  /** False during an outage of Postgres: rechecks of full licenses are not attempted then. */
  get isDatabaseReachable(): boolean {
    return Atomics.load(this.#words, DATABASE) === 1
  }

  set isDatabaseReachable(isReachable: boolean) {
    Atomics.store(this.#words, DATABASE, isReachable ? 1 : 0)
  }

  /** The version of the last change of a public key. A replica with another version has messages to read. */
  get publicKeysVersion(): number {
    return Atomics.load(this.#words, PUBLIC_KEYS)
  }

  set publicKeysVersion(version: number) {
    Atomics.store(this.#words, PUBLIC_KEYS, version)
  }

  /** True once the program stops: every response then closes its connection. */
  get isStopping(): boolean {
    return this.#words[STOPPING] === 1
  }

  stop(): void {
    Atomics.store(this.#words, STOPPING, 1)
  }
}
