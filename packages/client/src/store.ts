// What the client remembers between runs: the license file and the latest time seen, as one text in the app's storage.
// Invariants: changes run one after another and each reads before it writes, so none is lost inside this process; a time
// seen and a refusal hold in it until they are written, whatever the storage does.

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
  /** Changes the fields that `edit` returns. False when the storage failed. */
  change(edit: (memory: Memory) => Partial<Memory>): Promise<boolean>
}

/** What the storage has not taken. A file that it did not take is not kept: it was never said to be stored. */
interface Unwritten {
  latestSeenMs: number
  /** The file that the storage may still hold is no longer to be used. */
  isForgotten: boolean
}

const NOTHING: Unwritten = { latestSeenMs: 0, isForgotten: false }

/** A store over the app's storage. Failures of the storage are told to `onError` and never thrown. */
export function createStore(storage: LicenseStorage, onError: (error: unknown) => void): Store {
  let previous: Promise<unknown> = Promise.resolve()
  let unwritten: Unwritten = NOTHING

  /** Null when the storage failed. */
  async function read(): Promise<{ text: string | null } | null> {
    try {
      return { text: await storage.read() }
    } catch (error) {
      onError(error)
      return null
    }
  }

  async function write(text: string): Promise<boolean> {
    try {
      await storage.write(text)
      return true
    } catch (error) {
      onError(error)
      return false
    }
  }

  function recall(stored: string | null): Memory {
    const { file, latestSeenMs } = parse(stored)
    return {
      file: unwritten.isForgotten ? null : file,
      latestSeenMs: Math.max(latestSeenMs, unwritten.latestSeenMs),
    }
  }

  async function edited(edit: (memory: Memory) => Partial<Memory>): Promise<boolean> {
    const stored = await read()
    const memory = recall(stored?.text ?? null)
    const changes = edit(memory)
    const changed = { ...memory, ...changes }
    unwritten = {
      latestSeenMs: changed.latestSeenMs,
      isForgotten: unwritten.isForgotten || changes.file === null,
    }
    // What could not be read is not overwritten: it may hold a good file.
    if (stored === null) return false
    const text = serialize(changed)
    if (text !== stored.text && !(await write(text))) return false
    unwritten = NOTHING
    return true
  }

  return {
    async load() {
      await previous
      return recall((await read())?.text ?? null)
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
