/** A storage that fails like a disk that is full, read-only or unplugged. */

import { type LicenseStorage, memoryStorage } from '../src/index.ts'

export type StorageFault = 'read' | 'write'

export interface FailingStorage {
  storage: LicenseStorage
  /** The operations that fail; tests change it. */
  failing: Set<StorageFault>
  /** The same storage without the failures, as another process uses it. */
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
