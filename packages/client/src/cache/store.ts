/**
 * What the client remembers between runs: the license file and the latest time seen, as one text in the app's storage.
 * Invariants: uses run one after another and each change reads before it writes, so none is lost inside this process; a
 * time and a refusal hold in it until they are written, whatever the storage does; they take the place of what was stored
 * when they came, and of nothing that another process has stored since.
 */

import { parseObject } from '../json.ts'
import type { LicenseStorage } from '../options.ts'

export interface Memory {
  /** As the service gave it; judged at every use, never trusted for being stored. */
  file: string | null
  /** Milliseconds since 1970; 0 when no time was seen. */
  latestSeenMs: number
}

export interface Change {
  /** Null: what is stored is no longer to be used. */
  file?: string | null
  /** The device's clock, which only moves the latest time forward. */
  seenMs?: number
  /** The service's clock, which replaces the latest time. */
  toldMs?: number
}

export interface Store {
  /** What is remembered; nothing when the storage fails or holds something else. */
  load(): Promise<Memory>
  /** Makes the change that `edit` returns when its turn has come. False when the storage failed. */
  change(edit: () => Change): Promise<boolean>
}

/** A text of the storage, and what it says. */
interface Stored {
  text: string | null
  memory: Memory
}

/**
 * What does not count any more though it may still stand in the storage: the value that was read when it ended. Any other
 * value is newer and another process's; it counts, so that a program that cannot write takes back neither a good file nor
 * a later time. `unread`: nothing could be read then, so what can be read first is what ended.
 */
type Ended<Value> = { value: Value } | 'unread' | null

/** What the storage has not taken. A file that it did not take is not kept: it was never said to be stored. */
interface Unwritten {
  endedFile: Ended<string | null>
  latestSeenMs: number
  endedTime: Ended<number>
}

const EMPTY: Memory = { file: null, latestSeenMs: 0 }
const NOTHING: Unwritten = { endedFile: null, latestSeenMs: 0, endedTime: null }

/** A store over the app's storage. Failures of the storage are told to `onError` and never thrown. */
export function createStore(storage: LicenseStorage, onError: (error: unknown) => void): Store {
  let previous: Promise<unknown> = Promise.resolve()
  let unwritten: Unwritten = NOTHING

  /** Null when the storage failed. */
  async function read(): Promise<Stored | null> {
    try {
      const text = await storage.read()
      const memory = parse(text)
      const { endedFile, endedTime } = unwritten
      if (endedFile === 'unread') unwritten = { ...unwritten, endedFile: { value: memory.file } }
      if (endedTime === 'unread') unwritten = { ...unwritten, endedTime: { value: memory.latestSeenMs } }
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
    const { endedFile, endedTime } = unwritten
    return {
      file: isEnded(file, endedFile) ? null : file,
      latestSeenMs: Math.max(isEnded(latestSeenMs, endedTime) ? 0 : latestSeenMs, unwritten.latestSeenMs),
    }
  }

  function remember({ file, seenMs, toldMs }: Change, stored: Stored | null): void {
    if (file === null) unwritten = { ...unwritten, endedFile: end(stored?.memory.file) }
    if (toldMs !== undefined)
      unwritten = { ...unwritten, latestSeenMs: toldMs, endedTime: end(stored?.memory.latestSeenMs) }
    if (seenMs !== undefined) unwritten = { ...unwritten, latestSeenMs: Math.max(unwritten.latestSeenMs, seenMs) }
  }

  async function edited(edit: () => Change): Promise<boolean> {
    const stored = await read()
    const change = edit()
    remember(change, stored)
    // What could not be read is not overwritten: it may hold a good file.
    if (stored === null) return false
    const memory = recall(stored)
    const text = serialize({ ...memory, file: change.file ?? memory.file })
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
