/**
 * Ids are UUIDv7: 48 bits of milliseconds, a 12-bit counter within the millisecond, and 62 random bits. They sort by time of creation,
 * strictly within a process, so a list sorted by id needs no other column (docs/api.md#m1).
 */

import { randomFillSync } from 'node:crypto'

const COUNTER_BITS = 12
const COUNTER_LIMIT = 1 << COUNTER_BITS

const pool = new Uint8Array(8 * 512)
let poolAt = pool.length
let lastMs = 0
let counter = 0

/** Returns eight random bytes. Fills a pool of 4,096 bytes with one call of the system's random source, because a call is expensive. */
function randomBytes(): Uint8Array {
  if (poolAt === pool.length) {
    randomFillSync(pool)
    poolAt = 0
  }
  poolAt += 8
  return pool.subarray(poolAt - 8, poolAt)
}

/** Returns the 16 bytes of a new id. A new id sorts after earlier ids even when the clock is set back. */
export function uuidv7Bytes(nowMs: number = Date.now()): Uint8Array {
  if (nowMs > lastMs) {
    lastMs = nowMs
    counter = (randomBytes()[0] ?? 0) << 3 // starts in the lower half, so that it can be incremented
  } else if (++counter === COUNTER_LIMIT) {
    lastMs++
    counter = 0
  }
  const bytes = new Uint8Array(16)
  const high = Math.floor(lastMs / 65_536)
  bytes[0] = high >>> 24
  bytes[1] = high >>> 16
  bytes[2] = high >>> 8
  bytes[3] = high
  bytes[4] = lastMs >>> 8
  bytes[5] = lastMs
  bytes[6] = 0x70 | (counter >>> 8)
  bytes[7] = counter
  bytes.set(randomBytes(), 8)
  bytes[8] = 0x80 | ((bytes[8] ?? 0) & 0x3f)
  return bytes
}

/** Returns a new id as text, such as `01912d68-783e-7a03-8467-5661c1243ad4`. */
export function uuidv7(nowMs?: number): string {
  return bytesToUuid(uuidv7Bytes(nowMs))
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

/** Returns the 16 bytes of an id's text. Throws a TypeError for text that is not hexadecimal digits in groups of 8-4-4-4-12. */
export function uuidToBytes(text: string): Uint8Array {
  if (!UUID.test(text)) throw new TypeError('An id must be 32 hexadecimal digits in groups of 8-4-4-4-12')
  return Uint8Array.from(Buffer.from(text.replaceAll('-', ''), 'hex'))
}

/** Returns the text of an id's 16 bytes, in lower case. */
export function bytesToUuid(bytes: Uint8Array): string {
  const hex = toHex(bytes)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}

/** Returns bytes as hexadecimal digits, which Postgres also accepts as a uuid. */
export function toHex(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')
}

/**
 * Returns a map key that is unique for each machine of each license. Its first 32 characters are the license's id in
 * hexadecimal.
 */
export function machineKey(licenseId: Uint8Array, machineId: Uint8Array): string {
  return toHex(licenseId) + Buffer.from(machineId.buffer, machineId.byteOffset, machineId.byteLength).toString('latin1')
}
