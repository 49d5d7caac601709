/**
 * Keeps a copy of the index in a file. A restart then reads only the changes since the copy, and can start without Postgres.
 * A separate thread makes the copy. Meanwhile the main thread does not write to the index, and the workers still decide
 * checks.
 */

import { createHash } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
import { Worker } from 'node:worker_threads'

import type { IndexWriter } from '@keyward/engine'

import type { PublicKeyStore } from '../public-keys/store.ts'
import { type IndexFileContent, readIndexFile, writeIndexFile } from './format.ts'
import { type IndexKeys, openKeys } from './keys.ts'
import type { WriterMessage } from './messages.ts'
import { programDigest } from './program.ts'

/** The server and the snapshot of it that the index contains. */
export interface FilePosition {
  readonly identity: string
  readonly snapshot: string
}

export interface RestoredIndex extends FilePosition {
  /** The time at which the index was last current, in milliseconds since 1970. */
  readonly currentAtMs: number
  /** Whether the file is of the database that the validator is configured for, judged by the address. */
  readonly isOfSource: boolean
}

export interface IndexFileOptions {
  readonly path: string
  readonly intervalMs: number
  readonly databaseUrl: string
}

/** The parts of the validator that the file contains, and the callbacks of `IndexFile`. */
export interface IndexFileParts {
  readonly index: IndexWriter
  readonly publicKeys: PublicKeyStore
  /** Pauses the follower and returns the position of the index. Returns null without a pause if there is no position. */
  pause(): Promise<FilePosition | null>
  resume(): void
  /** Returns the position of the index after the follower has stopped, or null. */
  position(): FilePosition | null
  /** Returns the time at which the index was last current, in milliseconds since 1970. */
  currentAtMs(): number
  onWritten(bytes: number, pausedMs: number): void
  onError(error: unknown): void
}

export class IndexFile {
  readonly keys: IndexKeys
  readonly #options: IndexFileOptions
  readonly #program = programDigest()
  #parts: IndexFileParts | null = null
  #timer: NodeJS.Timeout | null = null
  #writing: Promise<void> | null = null
  /** Resolves when the index may be changed again. Null while it may be changed. */
  #thawed: Promise<void> | null = null

  /** Creates the folder and opens the keys. Throws when the folder is not writable. */
  constructor(options: IndexFileOptions) {
    this.#options = options
    mkdirSync(dirname(options.path), { recursive: true })
    this.keys = openKeys(options.path)
  }

  /**
   * Resolves when the index may be changed again. Claims and releases wait for this promise. Null while the index may be
   * changed.
   */
  get thawed(): Promise<void> | null {
    return this.#thawed
  }

  /** Restores a new index from the file. Throws the reason if the file cannot be used; the index is then empty. */
  restore(index: IndexWriter, publicKeys: PublicKeyStore): RestoredIndex {
    const { path, databaseUrl } = this.#options
    const { header, publicKeys: keys } = readIndexFile(path, this.keys.fileKey, this.#program, (sizes, fill) =>
      index.restore(sizes, fill),
    )
    publicKeys.restore(Buffer.from(keys).toString('utf8'))
    const { identity, snapshot, currentAtMs, source } = header
    return { identity, snapshot, currentAtMs, isOfSource: source === sourceOf(databaseUrl) }
  }

  start(parts: IndexFileParts): void {
    this.#parts = parts
    this.#timer = setInterval(() => {
      this.#writing ??= this.#write(parts)
        .catch((error: unknown) => parts.onError(error))
        .finally(() => (this.#writing = null))
    }, this.#options.intervalMs)
    this.#timer.unref()
  }

  /** Writes the file for the last time. Call it when the follower has stopped and no checks are decided any more. */
  async close(): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer)
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

  async #write(parts: IndexFileParts): Promise<void> {
    const thread = new Worker(new URL('./writer-thread.ts', import.meta.url), { name: 'keyward-index-file' })
    const messages = messagesOf(thread)
    try {
      await messages.next('ready')
      const position = await parts.pause()
      if (position === null) return
      const pausedMs = performance.now()
      const content = this.#contentOf(parts, position)
      const thaw = Promise.withResolvers<void>()
      this.#thawed = thaw.promise
      try {
        if (content === null) return
        thread.postMessage({ path: this.#options.path, key: this.keys.fileKey, content })
        await messages.next('copied')
      } finally {
        this.#thawed = null
        thaw.resolve()
        parts.resume()
      }
      const tookMs = performance.now() - pausedMs
      const written = await messages.next('written')
      if (written.type === 'written') parts.onWritten(written.bytes, tookMs)
    } finally {
      await thread.terminate()
    }
  }

  #contentOf(parts: IndexFileParts, position: FilePosition): IndexFileContent | null {
    const image = parts.index.image()
    if (image === null) return null
    const { identity, snapshot } = position
    const source = sourceOf(this.#options.databaseUrl)
    return {
      header: { identity, snapshot, source, currentAtMs: parts.currentAtMs(), program: this.#program },
      publicKeys: Buffer.from(parts.publicKeys.serialize()),
      parts: image,
    }
  }
}

/** Returns a digest of the address of a database, without its credentials. */
function sourceOf(databaseUrl: string): string {
  const withoutCredentials = databaseUrl.replace(/^[a-z]+:\/\/(?:[^/?#]*@)?/, '').replace(/[?#].*$/s, '')
  return createHash('sha256').update(withoutCredentials).digest('hex')
}

interface Messages {
  /** Resolves to the next message, which must be of this type. Rejects when the thread fails or ends. */
  next(type: WriterMessage['type']): Promise<WriterMessage>
}

function messagesOf(thread: Worker): Messages {
  const received: WriterMessage[] = []
  const state: { error: Error | null } = { error: null }
  let wake: () => void = () => undefined
  thread.on('message', (message: WriterMessage) => {
    received.push(message)
    wake()
  })
  const fail = (reason: Error): void => {
    state.error ??= reason
    wake()
  }
  thread.on('error', fail)
  thread.on('exit', () => fail(new Error('The thread that writes the index file has ended.')))
  return {
    async next(type) {
      while (received.length === 0 && state.error === null) {
        const { promise, resolve } = Promise.withResolvers<void>()
        wake = resolve
        await promise
      }
      const message = received.shift()
      if (message === undefined) throw state.error ?? new Error('The thread that writes the index file has ended.')
      if (message.type === 'failed') throw new Error(message.message)
      if (message.type !== type) throw new Error(`The thread that writes the index file sent ${message.type}.`)
      return message
    },
  }
}
