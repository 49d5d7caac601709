// The app's storage, given up on when it does not answer. Invariant: nothing is asked of it while something that was given
// up on is still under way, so that a text written late never takes the place of a newer one, and a call waits once.

import type { LicenseStorage } from '../options.ts'
import { TooLate, within } from '../timeout.ts'

/** As `storage`, but each use rejects that takes longer than `timeoutMs`, and until that one has settled every other. */
export function boundedStorage(storage: LicenseStorage, timeoutMs: number): LicenseStorage {
  let hanging = 0

  async function bounded<Value>(use: () => Promise<Value>): Promise<Value> {
    if (hanging > 0) throw new TooLate('The storage has not answered yet.')
    const used = use()
    try {
      return await within(timeoutMs, used)
    } catch (error) {
      if (error instanceof TooLate) {
        hanging++
        const settle = () => hanging--
        used.then(settle, settle)
      }
      throw error
    }
  }

  return {
    read: () => bounded(() => storage.read()),
    write: (text) => bounded(() => storage.write(text)),
  }
}
