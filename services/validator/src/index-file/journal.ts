/**
 * Stores the changes since the index file in a journal beside it, so that a restart forgets nothing that a heartbeat has acknowledged
 * (docs/api.md#p6). The heartbeat publishes a snapshot only when the changes up to this snapshot are durable.
 *
 * The journal consists of numbered segments. An index file names the segment that began when its copy began, so the file and the segments
 * from this one on contain the index. A change of the index that cannot be repeated from changes, such as a reload, interrupts the journal:
 * all segments are removed. A file whose segment is missing is incomplete, also if it is completed later. So is every file after a failed
 * write. Removing segments is possible on a full disk, and if even this fails, nothing is acknowledged any more.
 */

import { createCipheriv, createDecipheriv, randomBytes, randomInt } from 'node:crypto'
import { deserialize, serialize } from 'node:v8'

import type { Change } from '@keyward/engine'

import type { SigningKeyChange } from '../public-keys/store.ts'

const ALGORITHM = 'aes-256-gcm'
const LENGTH_BYTES = 4
const NONCE_BYTES = 12
const TAG_BYTES = 16
/** The maximum length of all segments. A longer journal is interrupted until the next index file. */
const MAX_BYTES = 128 * 1024 * 1024
/** The maximum number of changes of one read that are recorded. Encoding a change takes the main thread up to 10 us. */
const MAX_CHANGES = 2_000
/** The first segment has a random number below this one. The numbers remain exact when they are counted up. */
const FIRST_SEGMENTS = 2 ** 47

/** The changes that one read has delivered. */
export interface JournaledChanges {
  readonly changes: readonly Change[]
  readonly signingKeys: readonly SigningKeyChange[]
}

/** The state that the index has after changes, and the time at which it was current, in milliseconds since 1970. */
interface JournalPosition {
  readonly identity: string
  readonly snapshot: string
  readonly currentAtMs: number
}

interface JournalRecord extends JournalPosition {
  readonly reads: readonly JournaledChanges[]
}

/** Stores segments. Every result is durable when its promise resolves. */
export interface JournalDisk {
  /** Returns the numbers of all segments in ascending order. */
  list(): number[]
  read(segment: number): Buffer
  /** Appends to a segment. Creates the segment if it does not exist. */
  append(segment: number, bytes: Uint8Array): Promise<void>
  /** Removes the segments with smaller numbers. */
  removeBefore(segment: number): Promise<void>
}

export class Journal {
  readonly #disk: JournalDisk
  readonly #key: Uint8Array
  readonly #onError: (error: unknown) => void
  /** Called when an interruption ends the recording, so that the next index file is written soon. */
  readonly #onInterruption: () => void
  /** The number of the next segment. */
  #next: number
  /** The segment that receives records, or null while the journal is interrupted. */
  #segment: number | null = null
  /** The number of records in the segment. */
  #records = 0
  #bytes = 0
  /** The changes since the last record. */
  #reads: JournaledChanges[] = []
  #queue: { segment: number; bytes: Uint8Array }[] = []
  /** Whether segments may exist that an interruption must remove. */
  #mustRemove = false
  /** Resolves when all earlier writes have ended. */
  #written: Promise<unknown> = Promise.resolve()

  constructor(
    disk: JournalDisk,
    key: Uint8Array,
    onError: (error: unknown) => void,
    onInterruption: () => void = () => undefined,
  ) {
    this.#onInterruption = onInterruption
    this.#disk = disk
    this.#key = key
    this.#onError = onError
    // A number is never used again, because an older index file may name it. With the segments of a newer file, the older one would seem complete.
    this.#next = (disk.list().at(-1) ?? randomInt(FIRST_SEGMENTS)) + 1
  }

  /** Whether the journal records changes. If not, only the next index file can be complete. */
  get isRecording(): boolean {
    return this.#segment !== null
  }

  /**
   * Returns the records since an index file that names this segment, or null when a segment is missing or damaged. An incomplete record at
   * the end of a segment was never acknowledged. If there are records, the journal continues; otherwise it is interrupted.
   */
  restore(from: number | null): JournalRecord[] | null {
    try {
      const segments = from === null ? [] : this.#disk.list().filter((one) => one >= from)
      const isWhole = segments.length > 0 && segments.every((one, i) => one === from! + i)
      if (!isWhole) throw new Error('A segment of the journal is missing.')
      const records = segments.flatMap((one) => this.#read(one))
      this.#start()
      return records
    } catch {
      this.interrupt()
      return null
    }
  }

  /** Receives changes that were applied to the index. */
  applied(changes: readonly Change[], signingKeys: readonly SigningKeyChange[]): void {
    const count = changes.length + signingKeys.length
    if (this.#segment === null || count === 0) return
    if (count > MAX_CHANGES) this.interrupt()
    else this.#reads.push({ changes, signingKeys })
  }

  /** Records that the index has changed in a way that changes do not repeat. */
  interrupt(): void {
    const wasRecording = this.#segment !== null
    this.#segment = null
    this.#reads = []
    this.#queue = []
    this.#mustRemove = true
    if (wasRecording) this.#onInterruption()
  }

  /** Resolves to whether the received changes, which end at this position, are durable or the journal is durably interrupted. */
  commit(position: JournalPosition): Promise<boolean> {
    if (this.#segment !== null && this.#reads.length > 0) this.#enqueue(this.#segment, this.#encode(position))
    if (this.#bytes > MAX_BYTES) this.interrupt()
    return this.#write()
  }

  /** Begins a segment, for an index file that is copied now. Resolves to its number, or to null when it could not be created. */
  async begin(): Promise<number | null> {
    const segment = this.#start()
    return (await this.#write()) && this.#segment === segment ? segment : null
  }

  /** Records that an index file that names this segment is complete. */
  async completed(segment: number | null): Promise<void> {
    if (segment === null || this.#segment === null) return
    this.#bytes = 0
    await this.#disk.removeBefore(segment).catch(this.#onError)
  }

  #start(): number {
    this.#segment = this.#next++
    this.#records = 0
    this.#enqueue(this.#segment, new Uint8Array(0))
    return this.#segment
  }

  #enqueue(segment: number, bytes: Uint8Array): void {
    this.#queue.push({ segment, bytes })
    this.#bytes += bytes.length
  }

  #write(): Promise<boolean> {
    const done = this.#written.then(() => this.#writeQueue())
    this.#written = done
    return done
  }

  async #writeQueue(): Promise<boolean> {
    try {
      if (this.#mustRemove) await this.#remove()
      // The records of several commits cost one write.
      for (const [segment, parts] of Map.groupBy(this.#queue.splice(0), (one) => one.segment))
        await this.#disk.append(segment, Buffer.concat(parts.map(({ bytes }) => bytes)))
      return true
    } catch (error) {
      this.#onError(error)
      this.interrupt()
      return await this.#remove().then(
        () => true,
        () => false,
      )
    }
  }

  /** Removes the segments of before the interruption. A segment that has begun since is in the queue and not on the disk. */
  async #remove(): Promise<void> {
    await this.#disk.removeBefore(this.#segment ?? this.#next)
    this.#mustRemove = false
    this.#bytes = 0
  }

  #encode(position: JournalPosition): Uint8Array {
    const plain = serialize({ ...position, reads: this.#reads.splice(0) } satisfies JournalRecord)
    const nonce = randomBytes(NONCE_BYTES)
    const cipher = createCipheriv(ALGORITHM, this.#key, nonce).setAAD(placeOf(this.#segment!, this.#records++))
    const length = Buffer.alloc(LENGTH_BYTES)
    length.writeUInt32LE(NONCE_BYTES + plain.length + TAG_BYTES)
    return Buffer.concat([length, nonce, cipher.update(plain), cipher.final(), cipher.getAuthTag()])
  }

  #read(segment: number): JournalRecord[] {
    const bytes = this.#disk.read(segment)
    const records: JournalRecord[] = []
    for (let at = 0; at + LENGTH_BYTES <= bytes.length;) {
      const end = at + LENGTH_BYTES + bytes.readUInt32LE(at)
      if (end > bytes.length) break
      const record = this.#decode(bytes.subarray(at + LENGTH_BYTES, end), placeOf(segment, records.length))
      if (record === null && bytes.subarray(end).some((byte) => byte !== 0)) throw new Error('The journal is damaged.')
      if (record === null) break
      records.push(record)
      at = end
    }
    return records
  }

  #decode(bytes: Buffer, place: Buffer): JournalRecord | null {
    if (bytes.length < NONCE_BYTES + TAG_BYTES) return null
    try {
      const decipher = createDecipheriv(ALGORITHM, this.#key, bytes.subarray(0, NONCE_BYTES)).setAAD(place)
      decipher.setAuthTag(bytes.subarray(-TAG_BYTES))
      const plain = Buffer.concat([decipher.update(bytes.subarray(NONCE_BYTES, -TAG_BYTES)), decipher.final()])
      const record: unknown = deserialize(plain)
      return isRecord(record) ? record : null
    } catch {
      return null
    }
  }
}

/** Returns the additional data of a record, which binds the record to its place. */
function placeOf(segment: number, record: number): Buffer {
  return Buffer.from(`${segment}/${record}`)
}

/** Only this program can have written an authentic record, and `serialize` keeps every type, so the form of the changes is not examined. */
function isRecord(value: unknown): value is JournalRecord {
  return typeof value === 'object' && value !== null && 'reads' in value && 'snapshot' in value
}
