/**
 * Publishes state of the main thread to the workers in shared memory: whether checks may be decided, whether Postgres is
 * reachable, whether an index from a file is confirmed, and the version of the public keys. Only the main thread writes this state, and the workers read it at every
 * request.
 */

/** `loading` means that the index is being loaded or rebuilt. `stale` means that the index is too old to decide checks. */
const STATES = ['loading', 'serving', 'stale'] as const
export type State = (typeof STATES)[number]

const SERVING = STATES.indexOf('serving')

// The positions of the words in the shared memory.
const STATE = 0
const DATABASE = 1
const STOPPING = 2
const PUBLIC_KEYS = 3
const UNCONFIRMED = 4

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

  /**
   * Whether checks may be decided. A plain read suffices here and in `isStopping`, because a change may take effect a few
   * requests later.
   */
  get isServing(): boolean {
    return this.#words[STATE] === SERVING
  }

  /** Whether Postgres responds. During an outage, rechecks of full licenses are not attempted. */
  get isDatabaseReachable(): boolean {
    return Atomics.load(this.#words, DATABASE) === 1
  }

  set isDatabaseReachable(isReachable: boolean) {
    Atomics.store(this.#words, DATABASE, isReachable ? 1 : 0)
  }

  /** The version of the last change of a public key. A replica with another version has unread messages. */
  get publicKeysVersion(): number {
    return Atomics.load(this.#words, PUBLIC_KEYS)
  }

  set publicKeysVersion(version: number) {
    Atomics.store(this.#words, PUBLIC_KEYS, version)
  }

  /**
   * Whether the index was restored from its file and Postgres has not been reached since the start. A key that the index does not contain may
   * then be a new one (docs/api.md#p7).
   */
  get isUnconfirmed(): boolean {
    return this.#words[UNCONFIRMED] === 1
  }

  set isUnconfirmed(isUnconfirmed: boolean) {
    Atomics.store(this.#words, UNCONFIRMED, isUnconfirmed ? 1 : 0)
  }

  /** Whether the program is stopping. While it is stopping, every response closes the connection. */
  get isStopping(): boolean {
    return this.#words[STOPPING] === 1
  }

  stop(): void {
    Atomics.store(this.#words, STOPPING, 1)
  }
}
