/**
 * Keeps a copy of the index in a file. A restarted validator then reads only the changes since the copy, and can start without Postgres. A
 * separate thread makes the copy. Meanwhile the main thread does not write to the index, and the workers still decide checks.
 */

import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'

import type { IndexWriter } from '@keyward/engine'

import type { PublicKeyStore } from '../public-keys/store.ts'
import { type Clock, SYSTEM_CLOCK } from '../shared/clock.ts'
import { type IndexFileContent, readIndexFile, writeIndexFile } from './format.ts'
import { SegmentFiles } from './journal-disk.ts'
import { Journal, type JournalDisk, type JournaledChanges } from './journal.ts'
import { type IndexKeys, openKeys } from './keys.ts'
import type { FileWriter } from './messages.ts'
import { programDigest } from './program.ts'
import { WriterThread } from './thread.ts'

export interface FilePosition {
  readonly identity: string
  readonly snapshot: string
}

export interface RestoredIndex extends FilePosition {
  /** The time at which the index was last current, in milliseconds since 1970. */
  readonly currentAtMs: number
  /** The changes of the journal, which the index does not contain yet. The position is that after these changes. */
  readonly reads: readonly JournaledChanges[]
  /** Whether the file and the journal contain every change that the previous validator has acknowledged. */
  readonly isComplete: boolean
  /** Whether the file was written for the database at the configured address. */
  readonly isOfSource: boolean
}

interface IndexFileOptions {
  readonly path: string
  readonly intervalMs: number
  readonly databaseUrl: string
}

/** The clock, the program's digest and the writer, which tests replace. */
interface IndexFileEnvironment {
  readonly clock: Clock
  /** The digest of the running program. A file that another version of the program has written is not used. */
  readonly program: string
  createWriter(): FileWriter
  createDisk(path: string): JournalDisk
}

/** The parts of the validator that the file contains, and the callbacks of `IndexFile`. */
interface IndexFileParts {
  readonly index: IndexWriter
  readonly publicKeys: PublicKeyStore
  /** Pauses the follower and returns the position of the index. Returns null without a pause if there is no position. */
  pause(): Promise<FilePosition | null>
  resume(): void
  /** Returns the position of the index after the follower has stopped, or null. */
  position(): FilePosition | null
  /** Returns the time at which the index was last current, in milliseconds since 1970, or -Infinity when this time is unknown. */
  currentAtMs(): number
  onWritten(bytes: number, pausedMs: number): void
  onError(error: unknown): void
}

/** The time from an interruption of the journal until the next file, which completes the journal again. */
const AFTER_INTERRUPTION_MS = 10_000

export class IndexFile {
  readonly keys: IndexKeys
  readonly journal: Journal
  readonly #options: IndexFileOptions
  readonly #environment: IndexFileEnvironment
  #parts: IndexFileParts | null = null
  /** Cancels the next write. */
  #cancelTimer: () => void = () => undefined
  #writing: Promise<void> | null = null
  #isClosed = false
  /** Resolves when the index may be changed again. The promise is null while the index may be changed. */
  #thawed: Promise<void> | null = null

  /** Creates the folder and opens the keys. Throws when the folder is not writable. */
  constructor(options: IndexFileOptions, environment: IndexFileEnvironment = realEnvironment()) {
    this.#options = options
    this.#environment = environment
    mkdirSync(dirname(options.path), { recursive: true })
    this.keys = openKeys(options.path)
    const disk = environment.createDisk(options.path)
    this.journal = new Journal(
      disk,
      this.keys.fileKey,
      (error) => this.#parts?.onError(error),
      () => this.#parts && !this.#isClosed && this.#schedule(this.#parts),
    )
  }

  /** Delays the result of a claim or release while the index must not be changed. */
  async whenThawed<T>(result: Promise<T>): Promise<T> {
    const value = await result
    while (this.#thawed !== null) await this.#thawed
    return value
  }

  /** Restores a new index from the file. Throws an error with the reason if the file cannot be used; the index is then empty. */
  restore(index: IndexWriter, publicKeys: PublicKeyStore): RestoredIndex {
    const { path, databaseUrl } = this.#options
    const { header, publicKeys: keys } = readIndexFile(
      path,
      this.keys.fileKey,
      this.#environment.program,
      (sizes, fill) => index.restore(sizes, fill),
    )
    publicKeys.restore(Buffer.from(keys).toString('utf8'))
    const records = this.journal.restore(header.segment)
    const { identity, snapshot, currentAtMs } = records?.at(-1) ?? header
    const reads = (records ?? []).flatMap((record) => record.reads)
    const isOfSource = header.source === sourceOf(databaseUrl)
    return { identity, snapshot, currentAtMs, reads, isOfSource, isComplete: records !== null }
  }

  start(parts: IndexFileParts): void {
    this.#parts = parts
    this.#schedule(parts)
  }

  /** Writes the file for the last time. Call it when the follower has stopped and no checks are decided any more. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    await this.#writing
    const parts = this.#parts
    const position = parts?.position() ?? null
    if (parts === null || position === null) return
    const segment = await this.journal.begin()
    const content = this.#contentOf(parts, position, segment)
    if (content === null) return
    try {
      parts.onWritten(writeIndexFile(this.#options.path, this.keys.fileKey, content), 0)
      await this.journal.completed(segment)
    } catch (error) {
      parts.onError(error)
    }
  }

  #schedule(parts: IndexFileParts): void {
    this.#cancelTimer()
    const { intervalMs } = this.#options
    const delayMs = this.journal.isRecording ? intervalMs : Math.min(intervalMs, AFTER_INTERRUPTION_MS)
    this.#cancelTimer = this.#environment.clock.after(delayMs, () => {
      this.#schedule(parts)
      this.#writing ??= this.#write(parts)
        .catch((error: unknown) => parts.onError(error))
        .finally(() => (this.#writing = null))
    })
  }

  async #write(parts: IndexFileParts): Promise<void> {
    const writer = this.#environment.createWriter()
    try {
      await writer.ready()
      const position = await parts.pause()
      if (position === null) return
      const pausedMs = this.#environment.clock.nowMs()
      const thaw = Promise.withResolvers<void>()
      let segment: number | null
      try {
        segment = await this.journal.begin()
        const content = this.#contentOf(parts, position, segment)
        this.#thawed = thaw.promise
        if (content === null) return
        await writer.copy({ path: this.#options.path, key: this.keys.fileKey, content })
      } finally {
        this.#thawed = null
        thaw.resolve()
        parts.resume()
      }
      const tookMs = this.#environment.clock.nowMs() - pausedMs
      const bytes = await writer.written()
      await this.journal.completed(segment)
      parts.onWritten(bytes, tookMs)
    } finally {
      await writer.close()
    }
  }

  #contentOf(parts: IndexFileParts, position: FilePosition, segment: number | null): IndexFileContent | null {
    const currentAtMs = parts.currentAtMs()
    // The time is unknown while a restored index waits for the first contact with Postgres. The previous file is kept, because its time is
    // known.
    if (!Number.isFinite(currentAtMs)) return null
    const image = parts.index.image()
    if (image === null) return null
    const { identity, snapshot } = position
    const source = sourceOf(this.#options.databaseUrl)
    return {
      header: { identity, snapshot, source, currentAtMs, segment, program: this.#environment.program },
      publicKeys: Buffer.from(parts.publicKeys.serialize()),
      parts: image,
    }
  }
}

const createDisk = (path: string): JournalDisk => new SegmentFiles(path)

function realEnvironment(): IndexFileEnvironment {
  return { clock: SYSTEM_CLOCK, program: programDigest(), createWriter: () => new WriterThread(), createDisk }
}

/** Returns a digest of the address of a database, without its credentials. */
function sourceOf(databaseUrl: string): string {
  const withoutCredentials = databaseUrl.replace(/^[a-z]+:\/\/(?:[^/?#]*@)?/, '').replace(/[?#].*$/s, '')
  return createHash('sha256').update(withoutCredentials).digest('hex')
}
