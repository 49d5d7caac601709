/** Repeats writes of usage, as a validator does. */

import { isLockTimeout } from '../../src/errors.ts'

/** Runs `write`, repeats it after each lock timeout, and returns its result. */
export async function persist<T>(write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (!isLockTimeout(error)) throw error
    }
  }
}
