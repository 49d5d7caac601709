/**
 * The client's memory between runs, as one text in the app's storage: the file of each license key, the rejection that
 * ended it, and the latest time seen. Invariants: operations run one after another, and each change reads before it
 * writes, so this process loses none. A change for one license key never affects the file of another. A rejection and a
 * time that the storage did not take hold in this process until they are written; they replace what was stored when they
 * arrived, and nothing that another process has stored since.
 */

import type { LicenseStorage } from '../options.ts'
import { type Content, EMPTY_CONTENT, findLicense, parseContent, serializeContent, withLicense } from './content.ts'

/** The stored state of the client's own license key. */
export interface Memory {
  /** The file as the service sent it. It is judged at every use and never trusted because it is stored. */
  file: string | null
  /** The code that ended the file: that of a rejection, or `DEACTIVATED`. Null while the file may be used. */
  rejectedAs: string | null
  /** Milliseconds since 1970; 0 when no time was seen. */
  latestSeenMs: number
}

export interface Change {
  /** A new file. It replaces the old one and the rejection that ended it. */
  file?: string
  /** A code ends the stored file; null allows its use again. */
  rejectedAs?: string | null
  /** The time of the device's clock, which only moves the latest time forward. */
  seenMs?: number
  /** The time of the service's clock, which replaces the latest time. */
  serviceMs?: number
}

export interface Store {
  /** Returns what is stored; an empty memory when the storage fails or contains something else. */
  load(): Promise<Memory>
  /** Applies the change that `edit` returns when its turn has come. Returns false when the storage failed. */
  change(edit: () => Change): Promise<boolean>
}

/** A text of the storage and its content. */
interface Stored {
  text: string | null
  content: Content
}

/**
 * The stored value that a change replaces, although the storage may still contain it. Any other value is newer and comes
 * from another process; it counts, so that a program that cannot write takes back neither a good file nor a later time.
 * `unread`: the storage could not be read then, so the value that is read first is the one that the change replaces.
 */
type Replaced<Value> = { value: Value } | 'unread' | null

/** Changes that could not be stored. A file that could not be stored is dropped, because no call reported it as stored. */
interface Unwritten {
  rejectedAs: string | null
  rejectedFile: Replaced<string | null>
  latestSeenMs: number
  replacedTime: Replaced<number>
}

const NOTHING: Unwritten = { rejectedAs: null, rejectedFile: null, latestSeenMs: 0, replacedTime: null }

/** Runs an operation when those before it have ended. */
export type InTurn = <Value>(operation: () => Promise<Value>) => Promise<Value>

/** Returns the order of the operations on one storage, which all stores over it share. */
export function createTurns(): InTurn {
  let previous: Promise<unknown> = Promise.resolve()
  return (operation) => {
    const result = previous.then(operation)
    previous = result
    return result
  }
}

/** Creates a store for `licenseKey` over the app's storage. Reports failures of the storage to `onError`; never throws. */
export function createStore(
  storage: LicenseStorage,
  licenseKey: string,
  onError: (error: unknown) => void,
  inTurn: InTurn = createTurns(),
): Store {
  let unwritten: Unwritten = NOTHING

  const storedFile = ({ content }: Stored): string | null => findLicense(content, licenseKey)?.file ?? null

  /** Returns null when the storage failed. */
  async function read(): Promise<Stored | null> {
    try {
      const text = await storage.read()
      const stored = { text, content: parseContent(text, licenseKey) }
      const { rejectedFile, replacedTime } = unwritten
      if (rejectedFile === 'unread') unwritten = { ...unwritten, rejectedFile: { value: storedFile(stored) } }
      if (replacedTime === 'unread') unwritten = { ...unwritten, replacedTime: { value: stored.content.latestSeenMs } }
      return stored
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
    const content = stored?.content ?? EMPTY_CONTENT
    const { file = null, rejectedAs = null } = findLicense(content, licenseKey) ?? {}
    const storedMs = isReplaced(content.latestSeenMs, unwritten.replacedTime) ? 0 : content.latestSeenMs
    return {
      file,
      rejectedAs: isReplaced(file, unwritten.rejectedFile) ? unwritten.rejectedAs : rejectedAs,
      latestSeenMs: Math.max(storedMs, unwritten.latestSeenMs),
    }
  }

  /** Keeps the change in this process until it is written. */
  function remember({ rejectedAs, seenMs, serviceMs }: Change, stored: Stored | null): void {
    if (rejectedAs === null) unwritten = { ...unwritten, rejectedAs, rejectedFile: null }
    if (typeof rejectedAs === 'string') {
      const rejectedFile = stored === null ? 'unread' : { value: storedFile(stored) }
      unwritten = { ...unwritten, rejectedAs, rejectedFile }
    }
    if (serviceMs !== undefined) {
      const replacedTime = stored === null ? 'unread' : { value: stored.content.latestSeenMs }
      unwritten = { ...unwritten, latestSeenMs: serviceMs, replacedTime }
    }
    if (seenMs !== undefined) unwritten = { ...unwritten, latestSeenMs: Math.max(unwritten.latestSeenMs, seenMs) }
  }

  async function apply(edit: () => Change): Promise<boolean> {
    const stored = await read()
    const change = edit()
    remember(change, stored)
    // A storage that could not be read is not overwritten: it may contain a good file.
    if (stored === null) return false
    const next = applied(change, recall(stored))
    const text = serializeContent(withLicense(stored.content, licenseKey, next))
    if (text !== stored.text && !(await write(text))) return false
    unwritten = NOTHING
    return true
  }

  return {
    load: () => inTurn(async () => recall(await read())),
    change: (edit) => inTurn(() => apply(edit)),
  }
}

function applied({ file, rejectedAs }: Change, memory: Memory): Memory {
  if (file !== undefined) return { ...memory, file, rejectedAs: null }
  return rejectedAs === undefined ? memory : { ...memory, rejectedAs }
}

function isReplaced<Value>(value: Value, replaced: Replaced<Value>): boolean {
  return replaced === 'unread' || replaced?.value === value
}
