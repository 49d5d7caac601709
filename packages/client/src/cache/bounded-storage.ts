/**
 * Adds a timeout to the app's storage. Invariant: while an operation that timed out is still pending, every other one
 * fails at once. So a text that is written late never replaces a newer one, and a call waits for one timeout at most.
 */

import type { LicenseStorage } from '../options.ts'
import { TimeoutError, withTimeout } from '../timeout.ts'

/** Wraps `storage`: an operation that takes longer than `timeoutMs` rejects, and so does every other until it settles. */
export function boundedStorage(storage: LicenseStorage, timeoutMs: number): LicenseStorage {
  let pending = 0

  async function bounded<Value>(operation: () => Promise<Value>): Promise<Value> {
    if (pending > 0) throw new TimeoutError('An earlier operation of the storage is still pending.')
    const started = operation()
    try {
      return await withTimeout(timeoutMs, started)
    } catch (error) {
      if (error instanceof TimeoutError) {
        pending++
        const settle = () => pending--
        started.then(settle, settle)
      }
      throw error
    }
  }

  return {
    read: () => bounded(() => storage.read()),
    write: (text) => bounded(() => storage.write(text)),
  }
}
