/**
 * Simulates the folder of the index file across restarts of a validator. The files are real, and the real code writes and reads
 * them. Copying the index takes time: some parts are copied at the beginning, and the other parts at the end.
 */

import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { IMAGE_VERSION, type ImagePart } from '@keyward/engine'
import type { Random } from '@keyward/testkit'

import { readIndexFile, writeIndexFile } from '../../src/index-file/format.ts'
import { IndexFile } from '../../src/index-file/index-file.ts'
import { SegmentFiles } from '../../src/index-file/journal-disk.ts'
import type { JournalDisk } from '../../src/index-file/journal.ts'
import { openKeys } from '../../src/index-file/keys.ts'
import type { FileWriter, WriteRequest } from '../../src/index-file/messages.ts'
import type { Clock } from '../../src/shared/clock.ts'

/**
 * The states of the file when a validator starts. `latest`: as the last validator left it. `older`: an earlier file. `torn`: a
 * part of the file is missing, changed, or from an earlier file. `foreign`: the file of a validator with another database.
 * `none`: no file exists.
 */
export const FILE_STATES = ['latest', 'older', 'torn', 'foreign', 'none'] as const
export type FileState = (typeof FILE_STATES)[number]

const PROGRAM = 'simulation'
const DATABASE_URL = 'postgres://postgres/keyward'
const FOREIGN = { identity: '9/other/log/1/1', source: 'other' }
/** A folder in memory, which is used if it exists, so that runs do not wait for a disk. */
const MEMORY_FOLDER = '/dev/shm'

/** Resolves after a time on the clock of a validator, or never if the validator is killed first. */
type Sleep = (ms: number) => Promise<void>

export class SimulatedFiles {
  readonly #folder = mkdtempSync(join(existsSync(MEMORY_FOLDER) ? MEMORY_FOLDER : tmpdir(), 'keyward-simulation-'))
  readonly #path = join(this.#folder, 'index')
  readonly #random: Random
  readonly #intervalMs: number
  /** The content of every file that was written, oldest first. */
  readonly #earlier: Buffer[] = []

  constructor(random: Random, intervalMs: number) {
    this.#random = random
    this.#intervalMs = intervalMs
  }

  /** Returns the index file of a validator. */
  open(clock: Clock): IndexFile {
    const sleep: Sleep = async (ms) => {
      const { promise, resolve } = Promise.withResolvers<void>()
      clock.after(ms, resolve)
      await promise
    }
    return new IndexFile(
      { path: this.#path, intervalMs: this.#intervalMs, databaseUrl: DATABASE_URL },
      {
        clock,
        program: PROGRAM,
        createWriter: () => new SimulatedWriter(sleep, this.#random),
        createDisk: (path) => new SimulatedDisk(path, sleep, this.#random),
      },
    )
  }

  /** Records that the file was written. */
  written(): void {
    this.#earlier.push(readFileSync(this.#path))
  }

  /** Puts the file into the given state. */
  prepare(state: FileState): void {
    const latest = existsSync(this.#path) ? readFileSync(this.#path) : null
    if (state === 'latest' || latest === null) return
    if (state === 'none') return rmSync(this.#path)
    if (state === 'foreign') return this.#makeForeign()
    const older = this.#earlier.length === 0 ? latest : this.#random.pick(this.#earlier)
    writeFileSync(this.#path, state === 'older' ? older : this.#tear(latest, older))
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  #tear(latest: Buffer, older: Buffer): Buffer {
    const at = this.#random.int(latest.length)
    const changed = Buffer.from(latest)
    changed[at]! ^= 1 << this.#random.int(8)
    return this.#random.pick([
      latest.subarray(0, at),
      Buffer.concat([latest.subarray(0, at), older.subarray(at)]),
      changed,
    ])
  }

  /**
   * Replaces the identity and the source in the header of the file. The index in the file stays the same, so a validator that
   * uses the file shows an old version.
   */
  #makeForeign(): void {
    const complete = this.#earlier.at(-1)
    if (complete === undefined) return
    writeFileSync(this.#path, complete)
    const { fileKey } = openKeys(this.#path)
    let parts: ImagePart[] = []
    const { header, publicKeys } = readIndexFile(this.#path, fileKey, PROGRAM, (sizes, fill) => {
      parts = sizes.map((length) => ({ buffer: new SharedArrayBuffer(length), length }))
      return fill(parts.map(({ buffer }) => new Uint8Array(buffer)))
    })
    writeIndexFile(this.#path, fileKey, { header: { ...header, ...FOREIGN }, publicKeys, parts })
  }
}

/** Simulates the thread that writes one file. */
class SimulatedWriter implements FileWriter {
  readonly #sleep: Sleep
  readonly #random: Random
  /** Writes the copied parts. The function is null before the copy. */
  #write: (() => number) | null = null

  constructor(sleep: Sleep, random: Random) {
    this.#sleep = sleep
    this.#random = random
  }

  ready(): Promise<void> {
    return this.#sleep(this.#random.int(30))
  }

  async copy({ path, key, content }: WriteRequest): Promise<void> {
    const control = new Int32Array(content.parts[0]!.buffer)
    const before = control[IMAGE_VERSION]!
    const half = this.#random.int(content.parts.length)
    const copies = content.parts.slice(0, half).map(copyOf)
    await this.#sleep(this.#random.int(150))
    copies.push(...content.parts.slice(half).map(copyOf))
    const isUnchanged = control[IMAGE_VERSION] === before && before % 2 === 0
    this.#write = () => writeIndexFile(path, key, { ...content, parts: copies }, () => isUnchanged)
  }

  async written(): Promise<number> {
    await this.#sleep(this.#random.int(100))
    return this.#write!()
  }

  close(): Promise<void> {
    return Promise.resolve()
  }
}

function copyOf({ buffer, length }: ImagePart): ImagePart {
  const copy = new SharedArrayBuffer(length)
  new Uint8Array(copy).set(new Uint8Array(buffer, 0, length))
  return { buffer: copy, length }
}

/**
 * Simulates a disk that takes time to make a write durable. A kill may leave any part of an append, or an append that was not confirmed. A
 * full disk rejects appends, but removes files.
 */
class SimulatedDisk implements JournalDisk {
  readonly #path: string
  readonly #sleep: Sleep
  readonly #random: Random
  /** Lists and reads the segments. */
  readonly #files: SegmentFiles

  constructor(path: string, sleep: Sleep, random: Random) {
    this.#path = path
    this.#sleep = sleep
    this.#random = random
    this.#files = new SegmentFiles(path)
  }

  list(): number[] {
    return this.#files.list()
  }

  read(segment: number): Buffer {
    return this.#files.read(segment)
  }

  async append(segment: number, bytes: Uint8Array): Promise<void> {
    const path = `${this.#path}.${segment}.journal`
    const part = this.#random.int(bytes.length + 1)
    appendFileSync(path, bytes.subarray(0, part))
    await this.#sleep(this.#random.int(8))
    if (this.#random.int(200) === 0) throw new Error('The disk is full.')
    appendFileSync(path, bytes.subarray(part))
    await this.#sleep(this.#random.int(8))
  }

  async removeBefore(segment: number): Promise<void> {
    await this.#sleep(this.#random.int(8))
    for (const one of this.list().filter((number) => number < segment)) rmSync(`${this.#path}.${one}.journal`)
    await this.#sleep(this.#random.int(8))
  }
}
