/**
 * Decodes rows in Postgres's binary format, which binary COPY and `record_send` return. A field is a 32-bit length (-1: null) followed by
 * the output of its type's send function, all big-endian. Values are read in place, so that a large table costs few allocations.
 *
 *   COPY:         | 'PGCOPY\n\xff\r\n\0' | flags | length of the extension | rows… | -1 (16 bits) |
 *   a row:        | number of fields (16 bits) | for each field: length, bytes |
 *   record_send:  | number of fields (32 bits) | for each field: OID of its type, length, bytes |
 */

import type { ColumnReader } from './columns.ts'

const SIGNATURE_BYTES = 11
const HEADER_BYTES = SIGNATURE_BYTES + 8
const OID_BYTES = 4

/**
 * The maximum number of rows in a batch. V8's young generation has 4 MiB. It moves the rows of a large batch to the old generation, where
 * they stay as garbage until a full collection.
 */
const BATCH_ROWS = 256

/** The epoch of Postgres, 2000-01-01. Postgres counts microseconds from it. */
const POSTGRES_EPOCH_MS = 946_684_800_000
/** The upper 32 bits of the `timestamptz` values `infinity` and `-infinity`. No finite time has the same upper bits. */
const INFINITY_HIGH = 0x7fff_ffff
const MINUS_INFINITY_HIGH = -0x8000_0000

/** A position in a buffer of rows. Each method of `ColumnReader` reads one field and moves to the next. */
export class RowDecoder implements ColumnReader {
  #buffer: Buffer = Buffer.alloc(0)
  #at = 0
  /** The number of bytes before the length of each field. */
  #prefixBytes = 0
  #repeated: Uint8Array = new Uint8Array(0)

  /** Moves to the first field of the row at `at` of a COPY stream. */
  beginCopyRow(buffer: Buffer, at: number): void {
    this.#buffer = buffer
    this.#at = at + 2
    this.#prefixBytes = 0
  }

  /** Moves to the first field of the output of `record_send`. */
  beginRecord(buffer: Buffer): void {
    this.#buffer = buffer
    this.#at = 4
    this.#prefixBytes = OID_BYTES
  }

  uuid(): Uint8Array {
    return this.#view(this.#length())
  }

  uuidOrNull(): Uint8Array | null {
    const length = this.#length()
    return length < 0 ? null : this.#view(length)
  }

  repeatedUuid(): Uint8Array {
    const length = this.#length()
    if (!this.#isNext(this.#repeated, length)) this.#repeated = this.#view(length)
    else this.#at += length
    return this.#repeated
  }

  bytes(): Uint8Array {
    return this.#view(this.#length())
  }

  bytesOrNull(): Uint8Array | null {
    const length = this.#length()
    return length < 0 ? null : this.#view(length)
  }

  text(): string {
    const end = this.#length() + this.#at
    const text = this.#buffer.toString('utf8', this.#at, end)
    this.#at = end
    return text
  }

  integer(): number {
    this.#length()
    const value = this.#buffer.readInt32BE(this.#at)
    this.#at += 4
    return value
  }

  integerOrNull(): number | null {
    if (this.#length() < 0) return null
    const value = this.#buffer.readInt32BE(this.#at)
    this.#at += 4
    return value
  }

  boolean(): boolean {
    this.#length()
    return this.#buffer[this.#at++] === 1
  }

  timeOrNever(): number {
    if (this.#length() < 0) return Infinity
    const high = this.#buffer.readInt32BE(this.#at)
    const low = this.#buffer.readUInt32BE(this.#at + 4)
    this.#at += 8
    if (high === INFINITY_HIGH) return Infinity
    if (high === MINUS_INFINITY_HIGH) return -Infinity
    // Divides the 64 bits by 1,000 in two steps, because a number represents only 53 bits exactly.
    const quotient = Math.floor(high / 1_000)
    const rest = (high - quotient * 1_000) * 2 ** 32 + low
    return quotient * 2 ** 32 + Math.floor(rest / 1_000) + POSTGRES_EPOCH_MS
  }

  /** Returns the length of the next field, or -1 for null, and moves to the field's bytes. */
  #length(): number {
    const at = this.#at + this.#prefixBytes
    this.#at = at + 4
    return this.#buffer.readInt32BE(at)
  }

  #view(length: number): Uint8Array {
    const view = new Uint8Array(this.#buffer.buffer, this.#buffer.byteOffset + this.#at, length)
    this.#at += length
    return view
  }

  #isNext(bytes: Uint8Array, length: number): boolean {
    if (bytes.length !== length) return false
    for (let i = 0; i < length; i++) if (this.#buffer[this.#at + i] !== bytes[i]) return false
    return true
  }
}

/** Splits a COPY stream into rows. A row may span several chunks. */
export class CopyDecoder<T> {
  readonly #read: (columns: ColumnReader) => T
  readonly #fields: number
  readonly #decoder = new RowDecoder()
  #pending: Buffer = Buffer.alloc(0)
  #isStarted = false

  constructor(read: (columns: ColumnReader) => T, fields: number) {
    this.#read = read
    this.#fields = fields
  }

  /** Yields the rows that the chunk completes, in batches of up to 256. The next chunk must be pushed after the last batch. */
  *push(chunk: Buffer): Generator<T[]> {
    let rows: T[] = []
    const buffer = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    let at = this.#isStarted ? 0 : endOfHeader(buffer)
    if (at >= 0) {
      this.#isStarted = true
      for (let end = this.#endOfRow(buffer, at); end > 0; end = this.#endOfRow(buffer, at)) {
        this.#decoder.beginCopyRow(buffer, at)
        rows.push(this.#read(this.#decoder))
        at = end
        if (rows.length === BATCH_ROWS) {
          yield rows
          rows = []
        }
      }
    }
    this.#pending = at > 0 ? buffer.subarray(at) : buffer
    if (rows.length > 0) yield rows
  }

  /** Returns the end of the row that begins at `at`, or 0 when the row is incomplete or `at` is the end of the stream. */
  #endOfRow(buffer: Buffer, at: number): number {
    if (at + 2 > buffer.length) return 0
    const count = buffer.readInt16BE(at)
    if (count === -1) return 0
    if (count !== this.#fields) throw new Error(`COPY sent ${count} fields instead of ${this.#fields}`)
    let next = at + 2
    for (let field = 0; field < count; field++) {
      if (next + 4 > buffer.length) return 0
      const length = buffer.readInt32BE(next)
      next += length > 0 ? 4 + length : 4
    }
    return next > buffer.length ? 0 : next
  }
}

/** Returns the offset of the first row, or -1 when the header is incomplete. */
function endOfHeader(buffer: Buffer): number {
  if (buffer.length < HEADER_BYTES) return -1
  const end = HEADER_BYTES + buffer.readUInt32BE(HEADER_BYTES - 4)
  return buffer.length < end ? -1 : end
}
