/**
 * Computes pseudorandom numbers from (seed, table, ordinal), so that a load generator can compute every license key and
 * machine id of a generated database.
 */

/** Mixes four numbers into 32 bits by two rounds of MurmurHash3's finalizer. */
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

/** The numbers of the tables with ids. They make the ids of different tables differ. */
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

/** The time in the first UUIDv7 of each table: 2026-01-01T00:00:00Z, so that generated rows sort before rows that are added later. */
const FIRST_ID_MS = 1_767_225_600_000

const id = Buffer.alloc(16)

/** Returns a UUIDv7 as 32 hexadecimal digits. Ids sort in the order of their ordinals. */
export function idDigits(seed: number, table: TableName, ordinal: number): string {
  id.writeUIntBE(FIRST_ID_MS + ordinal, 0, 6)
  id.writeUInt16BE(0x7000 | TABLE[table], 6)
  id.writeUInt32BE(((scatter(seed, TABLE[table], ordinal, 8) & 0x3fffffff) | 0x80000000) >>> 0, 8)
  id.writeUInt32BE(scatter(seed, TABLE[table], ordinal, 9), 12)
  return id.toString('hex')
}

/** Returns a UUIDv7 in the usual form with dashes. */
export function idText(seed: number, table: TableName, ordinal: number): string {
  return idDigits(seed, table, ordinal).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-')
}
