// What the client remembers between runs: the license file and the latest time seen, as one text in the app's storage.
// Invariants: uses run one after another and each change reads before it writes, so none is lost inside this process; a
// time seen and a refusal hold in it until they are written, whatever the storage does; a refusal ends the file that was
// stored then, and none that another process has stored since.

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

/** A text of the storage, and what it says. */
interface Stored {
  text: string | null
  memory: Memory
}

/**
 * What does not count any more though it may still stand in the storage: the value that was read when it ended. Any other
 * value is newer and another process's. `unread`: nothing could be read then, so what can be read first is what ended.
 */
type Ended<Value> = { value: Value } | 'unread' | null

/** What the storage has not taken. A file that it did not take is not kept: it was never said to be stored. */
interface Unwritten {
  latestSeenMs: number
  endedFile: Ended<string | null>
}

const EMPTY: Memory = { file: null, latestSeenMs: 0 }
const NOTHING: Unwritten = { latestSeenMs: 0, endedFile: null }

/** A store over the app's storage. Failures of the storage are told to `onError` and never thrown. */
export function createStore(storage: LicenseStorage, onError: (error: unknown) => void): Store {
  let previous: Promise<unknown> = Promise.resolve()
  let unwritten: Unwritten = NOTHING

  /** Null when the storage failed. */
  async function read(): Promise<Stored | null> {
    try {
      const text = await storage.read()
      const memory = parse(text)
      if (unwritten.endedFile === 'unread') unwritten = { ...unwritten, endedFile: { value: memory.file } }
      return { text, memory }
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

  function recall(stored: Stored | null): Memory {
    const { file, latestSeenMs } = stored?.memory ?? EMPTY
    return {
      file: isEnded(file, unwritten.endedFile) ? null : file,
      latestSeenMs: Math.max(latestSeenMs, unwritten.latestSeenMs),
    }
  }

  async function edited(edit: (memory: Memory) => Partial<Memory>): Promise<boolean> {
    const stored = await read()
    const memory = recall(stored)
    const changes = edit(memory)
    const changed = { ...memory, ...changes }
    unwritten = {
      latestSeenMs: changed.latestSeenMs,
      endedFile: changes.file === null ? end(stored?.memory.file) : unwritten.endedFile,
    }
    // What could not be read is not overwritten: it may hold a good file.
    if (stored === null) return false
    const text = serialize(changed)
    if (text !== stored.text && !(await write(text))) return false
    unwritten = NOTHING
    return true
  }

  function inTurn<Value>(use: () => Promise<Value>): Promise<Value> {
    const result = previous.then(use)
    previous = result
    return result
  }

  return {
    load: () => inTurn(async () => recall(await read())),
    change: (edit) => inTurn(() => edited(edit)),
  }
}

function end<Value>(value: Value | undefined): Ended<Value> {
  return value === undefined ? 'unread' : { value }
}

function isEnded<Value>(value: Value, ended: Ended<Value>): boolean {
  return ended === 'unread' || ended?.value === value
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
