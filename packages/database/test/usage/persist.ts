/** Repeats writes of usage, as a validator does. */

import { isLockTimeout } from '../../src/errors.ts'

/** Returns the result of `write`, which is repeated after each lock timeout. */
export async function persist<T>(write: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await write()
    } catch (error) {
      if (!isLockTimeout(error)) throw error
    }
  }
}
