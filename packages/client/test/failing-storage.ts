/** A storage that fails like a full, read-only or disconnected disk. */

import { type LicenseStorage, memoryStorage } from '../src/index.ts'

export type StorageFault = 'read' | 'write'

export interface FailingStorage {
  storage: LicenseStorage
  /** The operations that fail. Tests change this set. */
  failing: Set<StorageFault>
  /** The same storage without failures, for another process. */
  sound: LicenseStorage
}

export function failingStorage(): FailingStorage {
  const sound = memoryStorage()
  const failing = new Set<StorageFault>()
  const storage: LicenseStorage = {
    async read() {
      if (failing.has('read')) throw new Error('EIO')
      return sound.read()
    },
    async write(text) {
      if (failing.has('write')) throw new Error('EROFS')
      await sound.write(text)
    },
  }
  return { storage, failing, sound }
}
