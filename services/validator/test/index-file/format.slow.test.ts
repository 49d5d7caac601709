import { randomBytes } from 'node:crypto'
import fs, { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { createIndex, type IndexWriter, openIndex } from '@keyward/engine'
import { random } from '@keyward/testkit'
import { afterAll, beforeEach, expect, test } from 'vitest'

import { readIndexFile, writeIndexFile } from '../../src/index-file/format.ts'
import { openKeys } from '../../src/index-file/keys.ts'

const folder = mkdtempSync(join(tmpdir(), 'keyward-index-file-'))
const path = join(folder, 'index')
const HEADER = { program: 'p', identity: 'i', snapshot: '7:7:', source: 's', currentAtMs: 1_000, segment: 7 }
const id = (n: number): Uint8Array => new Uint8Array(16).fill(n)

afterAll(() => rmSync(folder, { recursive: true, force: true }))

function createFilled(hashKey: Uint8Array, organizations = 200): IndexWriter {
  const index = createIndex({ reserve: 'small', hashKey })
  index.apply(
    Array.from({ length: organizations }, (_, i) => {
      return { entity: 'organization', id: id(i), row: { id: id(i) } } as const
    }),
  )
  return index
}

function write(index: IndexWriter, fileKey: Uint8Array): number {
  return writeIndexFile(path, fileKey, { header: HEADER, publicKeys: Buffer.from('[]'), parts: index.image()! })
}

/** Returns the number of organizations that an index has read from the file, or the reason why it cannot read the file. */
function read(
  keys: { hashKey: Uint8Array; fileKey: Uint8Array },
  program = 'p',
  index = createIndex({ reserve: 'small', hashKey: keys.hashKey }),
): number | string {
  let content: { header: object; publicKeys: Uint8Array }
  try {
    content = readIndexFile(path, keys.fileKey, program, (sizes, fill) => index.restore(sizes, fill))
  } catch (error) {
    const isEmpty = index.stats().rows.organization === 0 && openIndex(index.shared).findOrganization(id(7)) === -1
    return isEmpty && error instanceof Error ? error.message : -1
  }
  expect([content.header, Buffer.from(content.publicKeys).toString()]).toMatchObject([HEADER, '[]'])
  return index.stats().rows.organization
}

let keys: ReturnType<typeof openKeys>
beforeEach(() => {
  rmSync(path, { force: true })
  keys = openKeys(path)
})

test('restores the index with the same secret from files that only their owner can read', () => {
  const index = createFilled(keys.hashKey)
  expect(write(index, keys.fileKey)).toBe(readFileSync(path).length)
  expect(read(openKeys(path))).toBe(200)
  for (const file of [path, `${path}.key`]) expect(statSync(file).mode & 0o777).toBe(0o600)
  const reader = openIndex(index.shared)
  expect(reader.findOrganization(id(7))).toBeGreaterThan(0)
})

test('encrypts the bytes of the index', () => {
  const index = createFilled(keys.hashKey, 250)
  write(index, keys.fileKey)
  expect(readFileSync(path).includes(Buffer.from(id(7)))).toBe(false)
  const [, organizations] = index.image()!
  expect(Buffer.from(new Uint8Array(organizations!.buffer)).includes(Buffer.from(id(7)))).toBe(true)
})

/** Runs `run` while the file operation with the number `n` fails. Returns the names of the operations. */
function failsAt(n: number, run: () => void): string[] {
  const { closeSync, fsyncSync, openSync, renameSync, writeSync } = fs
  const real = { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync }
  const calls: string[] = []
  function failing<Values extends unknown[], Result>(operation: (...values: Values) => Result) {
    return (...values: Values): Result => {
      if (calls.push(operation.name) === n) throw new Error('no space left')
      return operation(...values)
    }
  }
  Object.assign(fs, {
    closeSync: failing(closeSync),
    fsyncSync: failing(fsyncSync),
    openSync: failing(openSync),
    renameSync: failing(renameSync),
    rmSync: failing(rmSync),
    // A disk that becomes full writes a part of the bytes first.
    writeSync: (file: number, bytes: Uint8Array, at: number) => {
      if (calls.length + 1 === n) writeSync(file, bytes, at, Math.floor((bytes.length - at) / 2))
      return failing(() => writeSync(file, bytes, at))()
    },
  })
  syncBuiltinESMExports()
  try {
    run()
  } catch (error) {
    if (!(error instanceof Error && error.message === 'no space left')) throw error
  } finally {
    Object.assign(fs, real)
    syncBuiltinESMExports()
  }
  return calls
}

test('has the former or the new index, whichever file operation fails', () => {
  const counts = new Set<number | string>()
  let n = 1
  for (let isReached = true; isReached; n++) {
    write(createFilled(keys.hashKey), keys.fileKey)
    const larger = createFilled(keys.hashKey, 250)
    isReached = failsAt(n, () => write(larger, keys.fileKey)).length >= n
    counts.add(read(keys))
    expect([200, 250]).toContain(read(keys))
    // The rest of a file of a killed process does not prevent the next one.
    writeFileSync(`${path}.tmp`, 'rest')
    write(larger, keys.fileKey)
    expect(read(keys)).toBe(250)
  }
  expect(n).toBeGreaterThan(10)
  expect(counts).toEqual(new Set([200, 250]))
})

test('makes the file durable before it replaces the former one, and then its name', () => {
  const operations = failsAt(Infinity, () => write(createFilled(keys.hashKey), keys.fileKey))
  const durable = operations.filter((name) => name === 'fsyncSync' || name === 'renameSync')
  expect(durable).toEqual(['fsyncSync', 'renameSync', 'fsyncSync'])
})

test('rejects 1,000 corrupted files', () => {
  const from = random(2026)
  write(createFilled(keys.hashKey), keys.fileKey)
  const original = readFileSync(path)
  const foreign = openKeys(join(folder, 'foreign'))
  write(createFilled(foreign.hashKey), foreign.fileKey)
  const other = readFileSync(path)
  const corruptions: (() => Buffer)[] = [
    () => original.subarray(0, from.int(original.length)),
    () => Buffer.concat([original, from.bytes(1 + from.int(100))]),
    () => {
      const bytes = Buffer.from(original)
      for (let i = 1 + from.int(3); i > 0; i--) bytes[from.int(bytes.length)]! ^= 1 << from.int(8)
      return bytes
    },
    // The beginning is from this file, and the remaining bytes are from another file.
    () => Buffer.concat([original.subarray(0, 1 + from.int(original.length - 1)), other]).subarray(0, original.length),
    () => {
      const bytes = Buffer.from(original)
      const at = from.int(bytes.length - 1)
      return bytes.fill(0, at, Math.min(bytes.length, at + 1 + from.int(4096)))
    },
    () => other,
    () => Buffer.from(from.bytes(from.int(5_000))),
  ]
  const accepted: string[] = []
  const index = createIndex({ reserve: 'small', hashKey: keys.hashKey })
  for (let i = 0; i < 1_000; i++) {
    const bytes = from.pick(corruptions)()
    if (bytes.equals(original)) continue
    writeFileSync(path, bytes)
    if (typeof read(keys, 'p', index) === 'number') accepted.push(`corruption ${i}`)
  }
  expect(accepted).toEqual([])
  writeFileSync(path, original)
  expect(read(keys, 'p', index)).toBe(200)
})

test('rejects a file of another version of the program, and a file whose secret is lost or readable by other users', () => {
  write(createFilled(keys.hashKey), keys.fileKey)
  expect(read(keys, 'another')).toBe('The file was written by another version of the program.')
  chmodSync(`${path}.key`, 0o644)
  expect(typeof read(openKeys(path))).toBe('string')
  write(createFilled(openKeys(path).hashKey), openKeys(path).fileKey)
  expect(read(openKeys(path))).toBe(200)
  writeFileSync(`${path}.key`, randomBytes(5))
  expect(typeof read(openKeys(path))).toBe('string')
})

test('keeps the previous file when the index changes during the copy', () => {
  const index = createFilled(keys.hashKey)
  write(index, keys.fileKey)
  const before = readFileSync(path)
  const content = { header: HEADER, publicKeys: Buffer.from('[]'), parts: index.image()! }
  expect(() => writeIndexFile(path, keys.fileKey, content, () => false)).toThrow('The index changed')
  expect(readFileSync(path)).toEqual(before)
  expect(statSync(`${path}.tmp`, { throwIfNoEntry: false })).toBeUndefined()
})
