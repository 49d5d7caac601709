/** Stores the segments of the journal as files beside the index file: `index.1.journal`, `index.2.journal`, and so on. */

import { readdirSync, readFileSync } from 'node:fs'
import { type FileHandle, open, rm } from 'node:fs/promises'
import { basename, dirname } from 'node:path'

import type { JournalDisk } from './journal.ts'

export class SegmentFiles implements JournalDisk {
  readonly #path: string
  /** The segment to which was appended last. */
  #file: { segment: number; handle: FileHandle } | null = null

  /** `path` is the path of the index file. */
  constructor(path: string) {
    this.#path = path
  }

  list(): number[] {
    const prefix = `${basename(this.#path)}.`
    const numbers = readdirSync(dirname(this.#path)).flatMap((name) => {
      const number = name.startsWith(prefix) ? /^(\d+)\.journal$/.exec(name.slice(prefix.length))?.[1] : undefined
      return number === undefined ? [] : [Number(number)]
    })
    return numbers.toSorted((a, b) => a - b)
  }

  read(segment: number): Buffer {
    return readFileSync(this.#pathOf(segment))
  }

  async append(segment: number, bytes: Uint8Array): Promise<void> {
    const isNew = this.#file?.segment !== segment
    const handle = isNew ? await this.#open(segment) : this.#file!.handle
    for (let at = 0; at < bytes.length;) at += (await handle.write(bytes, at)).bytesWritten
    await handle.datasync()
    if (isNew) await this.#syncFolder()
  }

  async removeBefore(segment: number): Promise<void> {
    const removed = this.list().filter((one) => one < segment)
    if (removed.length === 0) return
    for (const one of removed) await rm(this.#pathOf(one), { force: true })
    await this.#syncFolder()
  }

  async #open(segment: number): Promise<FileHandle> {
    await this.#file?.handle.close()
    this.#file = null
    const handle = await open(this.#pathOf(segment), 'a', 0o600)
    this.#file = { segment, handle }
    return handle
  }

  #pathOf(segment: number): string {
    return `${this.#path}.${segment}.journal`
  }

  async #syncFolder(): Promise<void> {
    const folder = await open(dirname(this.#path), 'r')
    try {
      await folder.sync()
    } finally {
      await folder.close()
    }
  }
}
