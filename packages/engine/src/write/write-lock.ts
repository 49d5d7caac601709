/** The writer's side of the seqlock: runs write sections, which readers see completely or not at all. */

import type { Journal } from '../memory/journal.ts'
import { FIRST_HEADER, FIRST_SHAPE, IMAGE_VERSION, VERSION } from '../memory/shared-memory.ts'
import { Draft } from './draft.ts'

/** The error after a section that did not end. The process should be restarted. */
export const UNUSABLE = 'The index is unusable, because a write section did not end; create another index.'

interface WriteLockOptions {
  /** Called after every section. */
  onSection?: (() => void) | undefined
  /**
   * Called after a section that threw. The memory then has the content from before the section. Returns whether the writer's own data has
   * that content, too. If not, the index is unusable.
   */
  onDiscard?: (() => boolean) | undefined
  /** Called when the index has become unusable. */
  onUnusable?: (() => void) | undefined
}

export class WriteLock {
  /** The draft of the section. The writer's views of the memory read and write through it. */
  readonly draft: Draft
  readonly #control: Int32Array
  readonly #journal: Journal
  readonly #options: WriteLockOptions
  /** The headers of the slabs and tables, and their content before the section. */
  readonly #headers: Int32Array
  readonly #before: Int32Array
  #isUnusable = false

  constructor(control: Int32Array, journal: Journal, options: WriteLockOptions) {
    this.#control = control
    this.#headers = control.subarray(FIRST_HEADER, FIRST_SHAPE)
    this.#before = new Int32Array(this.#headers.length)
    this.#journal = journal
    this.#options = options
    this.draft = new Draft(journal, () => this.#openInPlace())
  }

  /**
   * Runs `write` as one write section. If `write` throws, the section is discarded.
   *
   * With `inPlace`, and when the section does not fit into the journal, `write` changes the index itself, and readers wait until it ends. If
   * it throws then, the index is unusable: the section stays open, so that no reader decides a check from half of it, and the next section
   * throws.
   */
  section(write: () => void, inPlace = false): void {
    if (this.#isUnusable) throw new Error(UNUSABLE)
    const { draft } = this
    this.#before.set(this.#headers)
    this.#advance(IMAGE_VERSION)
    draft.isDirect = false
    if (inPlace) this.#openInPlace()
    try {
      write()
    } catch (error) {
      this.#isUnusable = draft.isDirect
      draft.clear()
      draft.isDirect = true
      if (!this.#isUnusable) {
        this.#headers.set(this.#before)
        this.#advance(IMAGE_VERSION)
        this.#isUnusable = this.#options.onDiscard?.() === false
      }
      if (this.#isUnusable) this.#options.onUnusable?.()
      throw error
    }
    if (draft.isDirect) this.#close()
    else this.#writeDraft()
    this.#advance(IMAGE_VERSION)
    this.#options.onSection?.()
  }

  #writeDraft(): void {
    const { draft } = this
    const { count } = draft
    draft.isDirect = true
    this.#isUnusable = count > 1 && !this.#journal.write(count)
    draft.clear()
    if (!this.#isUnusable) return
    this.#options.onUnusable?.()
    throw new Error(UNUSABLE)
  }

  /** Makes the version odd without a published journal, and writes the lines of the draft to the index. */
  #openInPlace(): void {
    const { draft } = this
    this.#advance(VERSION)
    this.#journal.copyAll(draft.count)
    draft.clear()
    draft.isDirect = true
  }

  #close(): void {
    this.#advance(VERSION)
    Atomics.notify(this.#control, VERSION)
  }

  /** Increments a version. The load keeps later stores behind the new version. */
  #advance(version: number): void {
    Atomics.store(this.#control, version, (Atomics.load(this.#control, version) + 1) | 0)
    Atomics.load(this.#control, version)
  }
}
