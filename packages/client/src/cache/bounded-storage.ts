/**
 * Adds a timeout to the app's storage. Invariant: while an operation that timed out is still pending, all other operations
 * fail immediately. A late write therefore never replaces a newer text, and a call waits for at most one timeout.
 */

import type { LicenseStorage } from '../options.ts'
import { TimeoutError, withTimeout } from '../timeout.ts'

/** Wraps `storage`. An operation that exceeds `timeoutMs` rejects, and until it settles, all other operations reject too. */
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
