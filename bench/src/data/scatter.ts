// Numbers that look random and follow from (seed, table, ordinal) alone. A load generator can so know every license key and
// machine id of a database with millions of them without reading one.

/** A well mixed 32-bit number out of four (two rounds of MurmurHash3's finalizer over a running sum). */
export function scatter(seed: number, table: number, ordinal: number, word = 0): number {
  let h = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(table + 0x7f4a7c15, 0xc2b2ae35)
  h = finish(h ^ Math.imul(ordinal + 1, 0x27d4eb2f))
  return finish(h ^ Math.imul(ordinal ^ (word + 1), 0x165667b1) ^ word)
}

function finish(value: number): number {
  let h = value
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

/** Tables that ids are made for; the number keeps ids of two tables apart. */
export const TABLE = {
  organization: 1,
  credential: 2,
  product: 3,
  customer: 4,
  license: 5,
  machine: 6,
  rule: 7,
} as const
export type TableName = keyof typeof TABLE

// 2026-01-01T00:00:00Z: ids of generated rows lie before those of rows made later, as UUIDv7 has it.
const FIRST_ID_MS = 1_767_225_600_000

/** Writes a UUIDv7 whose order is the order of ordinals; 16 bytes. */
export function writeId(bytes: Buffer, at: number, seed: number, table: TableName, ordinal: number): void {
  bytes.writeUIntBE(FIRST_ID_MS + ordinal, at, 6)
  bytes.writeUInt16BE(0x7000 | TABLE[table], at + 6)
  bytes.writeUInt32BE(((scatter(seed, TABLE[table], ordinal, 8) & 0x3fffffff) | 0x80000000) >>> 0, at + 8)
  bytes.writeUInt32BE(scatter(seed, TABLE[table], ordinal, 9), at + 12)
}

export function idText(seed: number, table: TableName, ordinal: number): string {
  const bytes = Buffer.alloc(16)
  writeId(bytes, 0, seed, table, ordinal)
  return bytes.toString('hex').replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5')
}
