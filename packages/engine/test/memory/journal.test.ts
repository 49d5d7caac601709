/**
 * Runs the protocol of the journal in every interleaving of one writer and two readers that help. The threads execute the real code of
 * `Journal`, which stops before each access to shared memory. To continue a thread, its current phase runs again from the start, and receives
 * the recorded results of the earlier operations. A phase is a section of the writer, or an attempt of a reader.
 *
 * The model is sequentially consistent. `seqlock.slow.test.ts` runs the same code on the processor.
 */

import { expect, test } from 'vitest'

import { Journal, LINE_BITS, type Operations } from '../../src/memory/journal.ts'
import {
  createShared,
  JOURNAL_HEADER_WORDS,
  LINE_WORDS,
  VERSION,
  wordsOfParts,
} from '../../src/memory/shared-memory.ts'
import { worlds } from '../support/worlds.ts'

/** The part of the memory that the sections write. */
const PART = 1
const ATTEMPTS = 2
/** Thrown to stop a thread before its next operation. */
const PAUSE = Symbol('pause')

interface World {
  /** The number of lines that each section writes. */
  lines: number
  sections: number
  readers: number
  /** Wrong operations, for the tests that show that the model can fail. */
  wrong?: Partial<Operations>
}

type Result = number | boolean

/** A thread: its remaining phases, and the results of the operations of the first of them that it has executed. */
interface Thread {
  phases: readonly (() => void)[]
  results: readonly Result[]
}

class Model {
  readonly #world: World
  readonly #shared = createShared([1, 2, 3, 4], 'small')
  readonly #header = new Int32Array(this.#shared.journal, 0, JOURNAL_HEADER_WORDS)
  readonly #control = new Int32Array(this.#shared.control)
  readonly #part = wordsOfParts(this.#shared)[PART]!
  readonly #journal: Journal
  readonly #seen = new Set<string>()
  /** Executes an operation of the thread that is running, or returns its recorded result. */
  #next: (operation: () => Result) => Result = () => 0
  #problem: string | null = null

  constructor(world: World) {
    this.#world = world
    const step = (operation: () => Result): Result => this.#next(operation)
    const operations: Operations = {
      load: (words, at) => Number(step(() => words[at]!)),
      store: (words, at, value) => void step(() => (words[at] = value)),
      put: (words, at, value) => void step(() => (words[at] = value)),
      // The former value only determines whether threads are notified.
      add: (words, at, by) => Number(step(() => ((words[at]! += by), 0))),
      replace: (words, at, former, value) => Boolean(step(() => words[at] === former && ((words[at] = value), true))),
      notify: () => undefined,
      awaitZero: (words, at) =>
        Boolean(
          step(() => {
            if (words[at] !== 0) throw PAUSE
            return true
          }),
        ),
      copyLine: (from, fromAt, to, toAt) => void step(() => (to[toAt] = from[fromAt]!)),
    }
    this.#journal = new Journal(this.#shared, { ...operations, ...world.wrong }, 1)
  }

  /** Tries every interleaving. Returns the first problem, or null, and the number of distinct states. */
  explore(): { problem: string | null; states: number } {
    const { readers, sections } = this.#world
    const writer: Thread = { phases: Array.from({ length: sections }, (_, i) => () => this.#write(i + 1)), results: [] }
    const reader: Thread = { phases: Array.from({ length: ATTEMPTS }, () => () => this.#read()), results: [] }
    this.#visit([writer, ...Array.from({ length: readers }, () => reader)])
    return { problem: this.#problem, states: this.#seen.size }
  }

  /** A section of the writer: writes its number to all lines. */
  #write(section: number): void {
    const { lines } = this.#world
    this.#next(() => {
      for (let line = 1; line <= lines; line++) {
        this.#journal.addresses[line] = (PART << LINE_BITS) | line
        this.#journal.lines[line * LINE_WORDS] = section
      }
      return true
    })
    this.#journal.write(lines + 1)
  }

  /** An attempt of a reader: reads all lines as `ReadLock` does, or helps when the version is odd. */
  #read(): void {
    const load = (words: Int32Array, at: number): number => Number(this.#next(() => words[at]!))
    const version = load(this.#control, VERSION)
    if ((version & 1) !== 0) return void this.#journal.help(version)
    const values: number[] = []
    for (let line = 1; line <= this.#world.lines; line++) values.push(load(this.#part, line * LINE_WORDS))
    if (load(this.#control, VERSION) !== version) return
    if (values.some((value) => 2 * value !== version)) this.#problem ??= `version ${version} contains ${values.join()}`
  }

  #visit(threads: readonly Thread[]): void {
    const memory = this.#save()
    const key = [...memory, ...threads.map(({ phases, results }) => `${phases.length}:${results.join()}`)].join(' ')
    if (this.#problem !== null || this.#seen.has(key)) return
    this.#seen.add(key)
    let canContinue = false
    for (const [i, thread] of threads.entries()) {
      const next = thread.phases.length === 0 ? null : this.#step(thread)
      if (next === null) continue
      canContinue = true
      this.#visit(threads.with(i, next))
      this.#restore(memory)
    }
    if (canContinue) return
    const isEnd = threads.every(({ phases }) => phases.length === 0)
    const { lines, sections } = this.#world
    const values = Array.from({ length: lines }, (_, i) => this.#part[(i + 1) * LINE_WORDS]!)
    const isRight = this.#control[VERSION] === 2 * sections && values.every((value) => value === sections)
    if (!isEnd) this.#problem ??= 'no thread can continue'
    else if (!isRight) this.#problem ??= `in the end, version ${this.#control[VERSION]} contains ${values.join()}`
  }

  /** Executes the next operation of a thread. Returns the thread after it, or null when the thread waits. */
  #step({ phases, results: former }: Thread): Thread | null {
    const results = [...former]
    let at = 0
    this.#next = (operation) => {
      if (at > former.length) throw PAUSE
      if (at === former.length) results.push(operation())
      return results[at++]!
    }
    try {
      phases[0]!()
    } catch (error) {
      if (error !== PAUSE) throw error
      return results.length === former.length ? null : { phases, results }
    }
    return { phases: phases.slice(1), results: [] }
  }

  /** Returns all words that the threads change. */
  #save(): number[] {
    const words = [this.#control[VERSION]!, ...this.#header.filter((_, at) => at % 16 === 0)]
    for (let line = 1; line <= this.#world.lines; line++)
      words.push(
        this.#part[line * LINE_WORDS]!,
        this.#journal.lines[line * LINE_WORDS]!,
        this.#journal.addresses[line]!,
      )
    return words
  }

  #restore(words: readonly number[]): void {
    this.#control[VERSION] = words[0]!
    for (let i = 0; i < 4; i++) this.#header[16 * i] = words[1 + i]!
    for (let line = 1; line <= this.#world.lines; line++) {
      this.#part[line * LINE_WORDS] = words[2 + 3 * line]!
      this.#journal.lines[line * LINE_WORDS] = words[3 + 3 * line]!
      this.#journal.addresses[line] = words[4 + 3 * line]!
    }
  }
}

test.each([
  { lines: 2, sections: 2, readers: 1 },
  { lines: 2, sections: 2, readers: 2 },
  // Three lines take several times as long.
  { lines: worlds(1, 3), sections: 1, readers: 2 },
])(
  'every version has the lines of one section with %o, in every interleaving',
  (world) => {
    const { problem, states } = new Model(world).explore()
    expect(problem).toBeNull()
    expect(states).toBeGreaterThan(500)
  },
  600_000,
)

const WORLD: World = { lines: 2, sections: 2, readers: 2 }

test.each<{ defect: string; wrong: Partial<Operations>; problem: RegExp }>([
  { defect: 'the writer does not wait for helpers', wrong: { awaitZero: () => true }, problem: /version/ },
  { defect: 'helpers do not register', wrong: { add: () => 1 }, problem: /version/ },
  { defect: 'lines are not copied', wrong: { copyLine: () => undefined }, problem: /version/ },
])(
  'the model detects that $defect',
  ({ wrong, problem }) => {
    expect(new Model({ ...WORLD, wrong }).explore().problem).toMatch(problem)
  },
  600_000,
)
