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

export class IndexFile {
  readonly keys: IndexKeys
  readonly #options: IndexFileOptions
  readonly #environment: IndexFileEnvironment
  #parts: IndexFileParts | null = null
  /** Cancels the next write. */
  #cancelTimer: () => void = () => undefined
  #writing: Promise<void> | null = null
  /** Resolves when the index may be changed again. The promise is null while the index may be changed. */
  #thawed: Promise<void> | null = null

  /** Creates the folder and opens the keys. Throws when the folder is not writable. */
  constructor(options: IndexFileOptions, environment: IndexFileEnvironment = realEnvironment()) {
    this.#options = options
    this.#environment = environment
    mkdirSync(dirname(options.path), { recursive: true })
    this.keys = openKeys(options.path)
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
    const { identity, snapshot, currentAtMs, source } = header
    return { identity, snapshot, currentAtMs, isOfSource: source === sourceOf(databaseUrl) }
  }

  start(parts: IndexFileParts): void {
    this.#parts = parts
    this.#schedule(parts)
  }

  /** Writes the file for the last time. Call it when the follower has stopped and no checks are decided any more. */
  async close(): Promise<void> {
    this.#cancelTimer()
    await this.#writing
    const parts = this.#parts
    const position = parts?.position() ?? null
    if (parts === null || position === null) return
    const content = this.#contentOf(parts, position)
    if (content === null) return
    try {
      parts.onWritten(writeIndexFile(this.#options.path, this.keys.fileKey, content), 0)
    } catch (error) {
      parts.onError(error)
    }
  }

  #schedule(parts: IndexFileParts): void {
    this.#cancelTimer = this.#environment.clock.after(this.#options.intervalMs, () => {
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
      const content = this.#contentOf(parts, position)
      const thaw = Promise.withResolvers<void>()
      this.#thawed = thaw.promise
      try {
        if (content === null) return
        await writer.copy({ path: this.#options.path, key: this.keys.fileKey, content })
      } finally {
        this.#thawed = null
        thaw.resolve()
        parts.resume()
      }
      const tookMs = this.#environment.clock.nowMs() - pausedMs
      parts.onWritten(await writer.written(), tookMs)
    } finally {
      await writer.close()
    }
  }

  #contentOf(parts: IndexFileParts, position: FilePosition): IndexFileContent | null {
    const currentAtMs = parts.currentAtMs()
    // The time is unknown while a restored index waits for the first contact with Postgres. The previous file is kept, because its time is
    // known.
    if (!Number.isFinite(currentAtMs)) return null
    const image = parts.index.image()
    if (image === null) return null
    const { identity, snapshot } = position
    const source = sourceOf(this.#options.databaseUrl)
    return {
      header: { identity, snapshot, source, currentAtMs, program: this.#environment.program },
      publicKeys: Buffer.from(parts.publicKeys.serialize()),
      parts: image,
    }
  }
}

function realEnvironment(): IndexFileEnvironment {
  return { clock: SYSTEM_CLOCK, program: programDigest(), createWriter: () => new WriterThread() }
}

/** Returns a digest of the address of a database, without its credentials. */
function sourceOf(databaseUrl: string): string {
  const withoutCredentials = databaseUrl.replace(/^[a-z]+:\/\/(?:[^/?#]*@)?/, '').replace(/[?#].*$/s, '')
  return createHash('sha256').update(withoutCredentials).digest('hex')
}
