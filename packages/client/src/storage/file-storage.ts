/**
 * Storage in a file. Invariant: the file contains one complete text at any time, and only its owner can read it. On Windows, the
 * permissions of the folder apply instead. A crash during a write leaves either the previous or the new text.
 */

import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

import type { LicenseStorage } from '../options.ts'

const OWNER_READS_AND_WRITES = 0o600
const OWNER_ONLY = 0o700

/** Stores the client's text in the file at `path`. Creates a missing folder with access for its owner only. */
export function fileStorage(path: string): LicenseStorage {
  return {
    async read() {
      try {
        return await readFile(path, 'utf8')
      } catch (error) {
        if (isMissing(error)) return null
        throw error
      }
    },
    async write(text) {
      const folder = dirname(path)
      await mkdir(folder, { recursive: true, mode: OWNER_ONLY })
      const draft = `${path}.${randomUUID()}.tmp`
      try {
        await writeDurably(draft, text)
        await rename(draft, path)
      } catch (error) {
        await rm(draft, { force: true })
        throw error
      }
    },
  }
}

/** Writes a new file and flushes it to the disk. Without the flush, a power cut after the rename could leave an empty file. */
async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', OWNER_READS_AND_WRITES)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT'
}
