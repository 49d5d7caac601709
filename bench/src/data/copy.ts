/** Writes rows in the binary format of COPY into large buffers, which is faster than building, escaping and parsing text. */

import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'

import { writeId, type TableName } from './scatter.ts'

const CHUNK_BYTES = 1 << 20
const LARGEST_ROW_BYTES = 4096
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1')
const TRAILER = Buffer.from([0xff, 0xff])
const POSTGRES_EPOCH_MS = Date.UTC(2000, 0, 1)

/** Writes rows in sequence. `row` begins a row and writes its number of fields. Each method below `row` appends one field. */
export class RowWriter {
  #chunk = Buffer.allocUnsafe(CHUNK_BYTES)
  #at = 0
  readonly #seed: number

  constructor(seed: number) {
    this.#seed = seed
  }

  get full(): boolean {
    return this.#at > CHUNK_BYTES - LARGEST_ROW_BYTES
  }

  /** Returns the bytes written since the previous call of this method. */
  take(): Buffer {
    const chunk = this.#chunk.subarray(0, this.#at)
    this.#chunk = Buffer.allocUnsafe(CHUNK_BYTES)
    this.#at = 0
    return chunk
  }

  row(fields: number): void {
    this.#at = this.#chunk.writeInt16BE(fields, this.#at)
  }

  id(table: TableName, ordinal: number | null): void {
    if (ordinal === null) return this.null()
    this.#at = this.#chunk.writeInt32BE(16, this.#at)
    writeId(this.#chunk, this.#at, this.#seed, table, ordinal)
    this.#at += 16
  }

  text(value: string): void {
    const length = this.#chunk.write(value, this.#at + 4, 'utf8')
    this.#chunk.writeInt32BE(length, this.#at)
    this.#at += 4 + length
  }

  bytes(value: Uint8Array): void {
    this.#at = this.#chunk.writeInt32BE(value.length, this.#at)
    this.#chunk.set(value, this.#at)
    this.#at += value.length
  }

  integer(value: number | null): void {
    if (value === null) return this.null()
    this.#at = this.#chunk.writeInt32BE(4, this.#at)
    this.#at = this.#chunk.writeInt32BE(value, this.#at)
  }

  timestamp(epochMs: number): void {
    this.#at = this.#chunk.writeInt32BE(8, this.#at)
    this.#at = this.#chunk.writeBigInt64BE(BigInt(epochMs - POSTGRES_EPOCH_MS) * 1000n, this.#at)
  }

  json(value: unknown): void {
    // The binary form of jsonb is a version byte and the text.
    this.text(`\u0001${JSON.stringify(value)}`)
  }

  null(): void {
    this.#at = this.#chunk.writeInt32BE(-1, this.#at)
  }
}

/** Copies `count` rows into a table. `writeRow` writes row number n, one field per column. */
export async function copyRows(
  client: pg.ClientBase,
  table: string,
  columns: readonly string[],
  count: number,
  writer: RowWriter,
  writeRow: (n: number) => void,
): Promise<void> {
  function* chunks(): Generator<Buffer> {
    yield HEADER
    for (let n = 0; n < count; n += 1) {
      writer.row(columns.length)
      writeRow(n)
      if (writer.full) yield writer.take()
    }
    yield writer.take()
    yield TRAILER
  }
  const target = client.query(copyFrom(`copy ${table} (${columns.join(', ')}) from stdin (format binary)`))
  await pipeline(Readable.from(chunks(), { objectMode: true, highWaterMark: 4 }), target)
}
