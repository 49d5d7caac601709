// Storage in a file. Invariant: the file holds one whole text at any moment, readable by its owner alone; a crash while
// writing leaves the text from before.

import { randomUUID } from 'node:crypto'
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

import type { LicenseStorage } from '../options.ts'

const OWNER_READS_AND_WRITES = 0o600
const OWNER_ONLY = 0o700

/** Keeps the client's text in the file at `path`. A missing folder is made, for the owner alone. */
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

/** On the disk when it returns, so that the rename never uncovers an empty file after a power cut. */
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
