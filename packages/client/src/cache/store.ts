/**
 * The state of the client between runs, as one text in the app's storage. It contains the file of each license key, the rejection that
 * ended the use of the file, and the latest observed time. Invariants:
 *
 * - Operations run one after another, and a change reads before it writes. This process therefore loses no change.
 * - A change for one license key does not affect the file of another key.
 * - A rejection or time that could not be written applies in this process until it is written. The rejection or time replaces the value
 *   that was stored when it arrived, but not a newer value of another process.
 */

import type { LicenseStorage } from '../options.ts'
import { type Content, EMPTY_CONTENT, findLicense, parseContent, serializeContent, withLicense } from './content.ts'

/** The stored state of the client's own license key. */
export interface Memory {
  /** The file as the service sent it. It is judged at every use, because other programs can change the storage. */
  file: string | null
  /** The code of the rejection that ended the use of the file, or `DEACTIVATED`. Null while the file may be used. */
  rejectedAs: string | null
  /** The latest observed time in milliseconds since 1970, or 0. */
  latestSeenMs: number
  /** The time of the latest signed response in milliseconds since 1970, or 0. */
  latestSignedMs: number
}

export interface StoreChange {
  /** A new file. It replaces the old file and its rejection. */
  file?: string
  /** A code ends the use of the stored file. Null allows its use again. */
  rejectedAs?: string | null
  /** A time of the device's clock, which replaces the latest observed time only if it is later. */
  seenMs?: number
  /** A time of the service's clock, which always replaces the latest observed time. */
  serviceMs?: number
  /** The time of a signed response. */
  signedMs?: number
}

export interface Store {
  /**
   * Returns the stored state with the unwritten changes. The stored state counts as empty when the storage fails or its text is malformed.
   */
  load(): Promise<Memory>
  /** Calls `edit` after all earlier operations and applies the returned change. Returns false when the storage failed. */
  change(edit: () => StoreChange): Promise<boolean>
}

/** The text in the storage and its parsed content. */
interface Stored {
  text: string | null
  content: Content
}

/**
 * The stored value that an unwritten change replaces. Any other stored value is newer and comes from another process, so it takes
 * precedence over the change. `unread`: the storage could not be read, so the change replaces the first value that is read later.
 */
type Replaced<Value> = { value: Value } | 'unread' | null

/** Changes that could not be stored. New files are not included, because the calls have reported them as not stored. */
interface Unwritten {
  rejectedAs: string | null
  rejectedFile: Replaced<string | null>
  latestSeenMs: number
  replacedTime: Replaced<number>
  latestSignedMs: number
}

const NOTHING: Unwritten = {
  rejectedAs: null,
  rejectedFile: null,
  latestSeenMs: 0,
  replacedTime: null,
  latestSignedMs: 0,
}

/** Runs an operation after all earlier operations have ended. */
type InTurn = <Value>(operation: () => Promise<Value>) => Promise<Value>

/** Creates a queue for the operations on one storage. All stores over the same storage share it. */
export function createTurns(): InTurn {
  let previous: Promise<unknown> = Promise.resolve()
  return (operation) => {
    const result = previous.then(operation)
    previous = result
    return result
  }
}

/** Creates a store for `licenseKey` over the app's storage. Passes errors of the storage to `onError` instead of throwing them. */
export function createStore(
  storage: LicenseStorage,
  licenseKey: string,
  onError: (error: unknown) => void,
  inTurn: InTurn = createTurns(),
): Store {
  let unwritten: Unwritten = NOTHING

  const storedFile = ({ content }: Stored): string | null => findLicense(content, licenseKey)?.file ?? null

  /** Reads the storage. Returns null if the storage failed. */
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
      latestSignedMs: Math.max(content.latestSignedMs, unwritten.latestSignedMs),
    }
  }

  async function apply(edit: () => StoreChange): Promise<boolean> {
    const stored = await read()
    const change = edit()
    unwritten = withChange(unwritten, change, stored && { file: storedFile(stored), ...stored.content })
    // A storage that could not be read may contain a good file, so the content is not overwritten.
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

/** Adds a change to the unwritten ones. `stored` is null if the storage could not be read. */
function withChange(
  before: Unwritten,
  { rejectedAs, seenMs, serviceMs, signedMs = 0 }: StoreChange,
  stored: { file: string | null; latestSeenMs: number } | null,
): Unwritten {
  const after = { ...before, latestSignedMs: Math.max(before.latestSignedMs, signedMs) }
  if (rejectedAs !== undefined) {
    after.rejectedAs = rejectedAs
    after.rejectedFile = rejectedAs === null ? null : stored === null ? 'unread' : { value: stored.file }
  }
  if (serviceMs !== undefined) {
    after.latestSeenMs = serviceMs
    after.replacedTime = stored === null ? 'unread' : { value: stored.latestSeenMs }
  }
  if (seenMs !== undefined) after.latestSeenMs = Math.max(after.latestSeenMs, seenMs)
  return after
}

function applied({ file, rejectedAs }: StoreChange, memory: Memory): Memory {
  if (file !== undefined) return { ...memory, file, rejectedAs: null }
  return rejectedAs === undefined ? memory : { ...memory, rejectedAs }
}

function isReplaced<Value>(value: Value, replaced: Replaced<Value>): boolean {
  return replaced === 'unread' || replaced?.value === value
}
