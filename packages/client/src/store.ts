// What the client remembers between runs: the license file and the latest time seen, as one text in the app's storage.
// Invariant: changes run one after another and each reads before it writes, so none is lost inside this process.

import { parseObject } from './json.ts'
import type { LicenseStorage } from './options.ts'

export interface Memory {
  /** As the service gave it; judged at every use, never trusted for being stored. */
  file: string | null
  /** Milliseconds since 1970; 0 when no time was seen. */
  latestSeenMs: number
}

export interface Store {
  /** What is remembered; nothing when the storage fails or holds something else. */
  load(): Promise<Memory>
  /** Changes what is remembered. False when the storage failed. */
  change(edit: (memory: Memory) => Memory): Promise<boolean>
}

/** A store over the app's storage. Failures of the storage are told to `onError` and never thrown. */
export function createStore(storage: LicenseStorage, onError: (error: unknown) => void): Store {
  let previous: Promise<unknown> = Promise.resolve()

  async function edited(edit: (memory: Memory) => Memory): Promise<boolean> {
    try {
      const text = await storage.read()
      const replaced = serialize(edit(parse(text)))
      if (replaced !== text) await storage.write(replaced)
      return true
    } catch (error) {
      onError(error)
      return false
    }
  }

  return {
    async load() {
      await previous
      try {
        return parse(await storage.read())
      } catch (error) {
        onError(error)
        return parse(null)
      }
    },
    change(edit) {
      const result = previous.then(() => edited(edit))
      previous = result
      return result
    },
  }
}

function serialize({ file, latestSeenMs }: Memory): string {
  return JSON.stringify({ version: 1, file, latestSeenMs })
}

function parse(text: string | null): Memory {
  const { file, latestSeenMs } = parseObject(text ?? '') ?? {}
  return {
    file: typeof file === 'string' ? file : null,
    latestSeenMs: typeof latestSeenMs === 'number' ? latestSeenMs : 0,
  }
}
