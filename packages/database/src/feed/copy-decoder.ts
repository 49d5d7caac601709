// Parses rows of binary COPY out of a stream. A row is handed on as soon as it is whole; the fields are read in place, so
// that a large table costs few allocations. The format: a header, then for each row a 16-bit count of fields and for
// each field a 32-bit length (-1: null) and its bytes, at the end a count of -1; all of it big-endian.

const SIGNATURE_BYTES = 11

/** The fields of one row. Its getters read the field of the given number; a `bytes` view lives as long as you keep it. */
export class CopyRow {
  buffer: Buffer = Buffer.alloc(0)
  readonly offsets: Int32Array
  readonly lengths: Int32Array

  constructor(fields: number) {
    this.offsets = new Int32Array(fields)
    this.lengths = new Int32Array(fields)
  }

  isNull(field: number): boolean {
    return this.length(field) < 0
  }

  bytes(field: number): Uint8Array {
    return new Uint8Array(this.buffer.buffer, this.buffer.byteOffset + this.offset(field), this.length(field))
  }

  /** Whether the field's bytes are those of `other`, found out without making a view. */
  equals(field: number, other: Uint8Array): boolean {
    const length = this.length(field)
    if (length !== other.length) return false
    const offset = this.offset(field)
    for (let i = 0; i < length; i++) if (this.buffer[offset + i] !== other[i]) return false
    return true
  }

  text(field: number): string {
    const offset = this.offset(field)
    return this.buffer.toString('utf8', offset, offset + this.length(field))
  }

  int4(field: number): number {
    return this.buffer.readInt32BE(this.offset(field))
  }

  float8(field: number): number {
    return this.buffer.readDoubleBE(this.offset(field))
  }

  boolean(field: number): boolean {
    return this.buffer[this.offset(field)] === 1
  }

  private offset(field: number): number {
    return this.offsets[field] ?? 0
  }

  private length(field: number): number {
    return this.lengths[field] ?? -1
  }
}

/** Cuts a stream of chunks into rows. Chunks may end anywhere. */
export class CopyParser {
  readonly row: CopyRow
  private pending: Buffer = Buffer.alloc(0)
  private started = false
  private readonly fields: number

  constructor(fields: number) {
    this.fields = fields
    this.row = new CopyRow(fields)
  }

  /** Calls `onRow` with each row that the chunk completes; always the same object, to be read at once. */
  push(chunk: Buffer, onRow: (row: CopyRow) => void): void {
    const buffer = this.pending.length === 0 ? chunk : Buffer.concat([this.pending, chunk])
    let at = 0
    if (!this.started) {
      const header = SIGNATURE_BYTES + 8
      if (buffer.length < header || buffer.length < header + buffer.readUInt32BE(header - 4)) {
        this.pending = buffer
        return
      }
      at = header + buffer.readUInt32BE(header - 4)
      this.started = true
    }
    this.row.buffer = buffer
    for (let end = this.locate(buffer, at); end > 0; end = this.locate(buffer, at)) {
      onRow(this.row)
      at = end
    }
    this.pending = buffer.subarray(at)
  }

  /** Finds the fields of the row that begins at `at` and returns where it ends, or 0 when it is not whole. */
  private locate(buffer: Buffer, at: number): number {
    if (at + 2 > buffer.length) return 0
    const count = buffer.readInt16BE(at)
    if (count === -1) return 0
    if (count !== this.fields) throw new Error(`COPY sent ${count} fields where ${this.fields} were asked for`)
    let next = at + 2
    for (let field = 0; field < count; field++) {
      if (next + 4 > buffer.length) return 0
      const length = buffer.readInt32BE(next)
      next += 4
      this.row.offsets[field] = next
      this.row.lengths[field] = length
      if (length > 0) next += length
    }
    return next > buffer.length ? 0 : next
  }
}
