/**
 * Writes and reads the index file: a header and the memory of the index, encrypted and authenticated (AES-256-GCM). The
 * authentication also serves as the checksum. A file that is incomplete, changed or encrypted with another secret is rejected.
 *
 *   | magic (8) | length of the header (4) | header, JSON | encrypted: public keys, parts of the index | tag (16) |
 */

import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import { closeSync, fstatSync, fsyncSync, openSync, readSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'

import type { ImagePart } from '@keyward/engine'
import { z } from 'zod'

const MAGIC = Buffer.from('KEYWARDX')
const VERSION = 2
const START_BYTES = MAGIC.length + 4
const MAX_HEADER_BYTES = 65_536
const NONCE_BYTES = 12
const TAG_BYTES = 16
const CHUNK_BYTES = 1_048_576

const size = z.number().int().min(0)

const headerSchema = z.object({
  version: z.literal(VERSION),
  nonce: z.hex().length(2 * NONCE_BYTES),
  /** The digest of the program that wrote the file. Another version of the program may use another format. */
  program: z.string(),
  /** The identity of the Postgres server, and the snapshot of this server that the index contains. */
  identity: z.string(),
  snapshot: z.string(),
  /** A digest of the address of the database. */
  source: z.string(),
  /** The time at which the index was last current, in milliseconds since 1970. */
  currentAtMs: z.number(),
  /** The first segment of the journal that the file needs, or null when the changes since the file are not in the journal. */
  segment: z.number().int().nullable(),
  publicKeysBytes: size,
  sizes: z.array(size),
})

type IndexFileHeader = Omit<z.infer<typeof headerSchema>, 'version' | 'nonce' | 'publicKeysBytes' | 'sizes'>

export interface IndexFileContent {
  readonly header: IndexFileHeader
  /** The public keys as JSON. */
  readonly publicKeys: Uint8Array
  readonly parts: readonly ImagePart[]
}

/**
 * Writes an index file, and renames it to its path when it is complete. `onCopied` is called when the parts have been copied,
 * and returns whether they stayed unchanged. Returns the length of the file. Throws when the parts changed or a write fails.
 */
export function writeIndexFile(
  path: string,
  key: Uint8Array,
  { header, publicKeys, parts }: IndexFileContent,
  onCopied: () => boolean = () => true,
): number {
  const temporary = `${path}.tmp`
  rmSync(temporary, { force: true })
  const file = openSync(temporary, 'wx', 0o600)
  try {
    const nonce = randomBytes(NONCE_BYTES)
    const sizes = parts.map(({ length }) => length)
    const whole = {
      ...header,
      version: VERSION,
      nonce: nonce.toString('hex'),
      publicKeysBytes: publicKeys.length,
      sizes,
    }
    const text = Buffer.from(JSON.stringify(whole))
    const start = Buffer.alloc(START_BYTES)
    MAGIC.copy(start)
    start.writeUInt32LE(text.length, MAGIC.length)
    const cipher = createCipheriv('aes-256-gcm', key, nonce)
    cipher.setAAD(Buffer.concat([start, text]))
    let bytes = writeAll(file, start) + writeAll(file, text)
    const views = [publicKeys, ...parts.map(({ buffer, length }) => new Uint8Array(buffer, 0, length))]
    for (const view of views) {
      // The bytes are copied, because the cipher does not accept shared memory.
      for (let at = 0; at < view.length; at += CHUNK_BYTES)
        bytes += writeAll(file, cipher.update(Buffer.from(view.subarray(at, at + CHUNK_BYTES))))
    }
    if (!onCopied()) throw new Error('The index changed while it was copied.')
    bytes += writeAll(file, cipher.final()) + writeAll(file, cipher.getAuthTag())
    fsyncSync(file)
    renameSync(temporary, path)
    syncFolder(dirname(path))
    return bytes
  } catch (error) {
    rmSync(temporary, { force: true })
    throw error
  } finally {
    closeSync(file)
  }
}

/** Receives the sizes of the parts, calls `fill` with memory for them, and returns whether the index accepts them. */
type RestoreParts = (sizes: readonly number[], fill: (parts: readonly Uint8Array[]) => boolean) => boolean

/**
 * Reads an index file of the given program. Returns its header and the public keys. Throws an error with the reason if the file
 * cannot be used. `restore` provides the memory of the index. The content of this memory is undefined if the function throws.
 */
export function readIndexFile(
  path: string,
  key: Uint8Array,
  program: string,
  restore: RestoreParts,
): { header: IndexFileHeader; publicKeys: Uint8Array } {
  const file = openSync(path, 'r')
  try {
    const start = readExactly(file, START_BYTES)
    const headerBytes = start.readUInt32LE(MAGIC.length)
    if (!start.subarray(0, MAGIC.length).equals(MAGIC) || headerBytes > MAX_HEADER_BYTES)
      throw new Error('The file is not an index file.')
    const text = readExactly(file, headerBytes)
    const header = headerSchema.parse(JSON.parse(text.toString('utf8')))
    if (header.program !== program) throw new Error('The file was written by another version of the program.')
    const { publicKeysBytes, sizes } = header
    const expected = sizes.reduce((sum, one) => sum + one, START_BYTES + headerBytes + publicKeysBytes + TAG_BYTES)
    if (fstatSync(file).size !== expected) throw new Error('The file is incomplete.')
    const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(header.nonce, 'hex'))
    decipher.setAAD(Buffer.concat([start, text]))
    const publicKeys = new Uint8Array(publicKeysBytes)
    const isValid = restore(sizes, (parts) => {
      for (const part of [publicKeys, ...parts]) {
        for (let at = 0; at < part.length; at += CHUNK_BYTES)
          part.set(decipher.update(readExactly(file, Math.min(CHUNK_BYTES, part.length - at))), at)
      }
      decipher.setAuthTag(readExactly(file, TAG_BYTES))
      decipher.final() // throws when a byte differs from what was written
      return true
    })
    if (!isValid) throw new Error('The file contains an index that does not fit into the memory of this index.')
    return { header, publicKeys }
  } finally {
    closeSync(file)
  }
}

function readExactly(file: number, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let at = 0; at < length;) {
    const read = readSync(file, bytes, at, length - at, null)
    if (read === 0) throw new Error('The file is incomplete.')
    at += read
  }
  return bytes
}

function writeAll(file: number, bytes: Uint8Array): number {
  for (let at = 0; at < bytes.length;) at += writeSync(file, bytes, at)
  return bytes.length
}

/** Makes the renaming durable. Some systems cannot synchronize a folder. */
function syncFolder(path: string): void {
  try {
    const folder = openSync(path, 'r')
    fsyncSync(folder)
    closeSync(folder)
  } catch {
    // The file has been renamed. After a crash of the host, the path may still lead to the previous file.
  }
}
