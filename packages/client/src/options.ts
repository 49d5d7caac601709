/**
 * The options of the client and their validation. A wrong option is a mistake of the app's developer, so this is the one
 * part of the client that throws.
 */

import { spkiToPublicKey, type VerificationKey } from '@keyward/license-file'

import { possibleLicenseKeys } from './license-key.ts'
import type { RefreshResult } from './results.ts'

/** Stores the client's one small text between runs. Both methods may fail or hang; the client continues without them. */
export interface LicenseStorage {
  /** Returns the text that was written last, or null. */
  read(): Promise<string | null>
  /** Replaces the whole text at once: a crash leaves the old or the new text, never a mixture. */
  write(text: string): Promise<void>
}

/** A public key of the organization, as `GET /api/v1/public-keys` returns it. The first two fields are enough. */
export interface PublicKey {
  keyId: string
  /** Standard base64 of the X.509 SubjectPublicKeyInfo. */
  publicKey: string
  algorithm?: string
  createdAt?: string
  retiredAt?: string | null
}

export interface ClientOptions {
  /** The base address of the service, such as `https://licenses.example.com`. It may contain a path. */
  baseUrl: string
  /**
   * Allows a `baseUrl` with `http:` on another host than this machine. Default false. Whoever is on the way can then
   * respond in place of the service.
   */
  allowHttp?: boolean
  /** The API key of the organization. It ships with the app, so it is not a secret. */
  apiKey: string
  /** The organization's public keys, shipped with the app. The client never takes a key from the network. */
  publicKeys: readonly PublicKey[]
  /**
   * The license key as the user typed it. It is sent without blanks around it. If the service does not know it and it
   * spells a generated key `XXXX-XXXX-XXXX-XXXX` in another way (lower case, without hyphens, with blanks), the generated
   * key is tried too, with one more request.
   */
  licenseKey: string
  /**
   * The id of the product that the app is. A license file of another product is then refused with `WRONG_PRODUCT`, also one
   * that is older than product ids in files. Online, an API key that is bound to the product has the same effect.
   */
  productId?: string | null | undefined
  /** Whether `validate` and `activate` ask for the entitlements of the license. Default false. */
  entitlements?: boolean
  /**
   * The id of this machine; `machineId()` of `@keyward/client/node` returns one. Licenses with a machine limit need it.
   * An empty id counts as none.
   */
  machineId?: string | null | undefined
  /** The name of this machine for people to read. `activate` sends it. */
  hostname?: string | null | undefined
  storage: LicenseStorage
  /**
   * The time budget of one call with all its retries, in milliseconds: more than 0 and less than 2^31. Default 5,000. A
   * storage operation that takes longer than this counts as failed.
   */
  timeoutMs?: number
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch
  /** The device's clock, in milliseconds since 1970. Default `Date.now`. A clock that throws is refused offline. */
  now?: () => number
  /** Receives the result of every refresh in the background. Errors that it throws are ignored. */
  onRefresh?: (result: RefreshResult) => void
  /** Receives the errors of the storage; the call continues. Errors that it throws are ignored. */
  onStorageError?: (error: unknown) => void
}

/** Validated `ClientOptions` with all defaults. */
export interface Settings {
  baseUrl: URL
  apiKey: string
  keys: readonly VerificationKey[]
  licenseKey: string
  /** The key that counts if the service does not know `licenseKey`; null if there is none. */
  otherLicenseKey: string | null
  productId: string | null
  entitlements: boolean
  machineId: string | undefined
  hostname: string | undefined
  storage: LicenseStorage
  timeoutMs: number
  fetch: typeof globalThis.fetch
  now: () => number
  onRefresh: (result: RefreshResult) => void
  onStorageError: (error: unknown) => void
}

const DEFAULT_TIMEOUT_MS = 5000
// The longest delay of a timer; with a longer one it fires at once.
const MAX_TIMEOUT_MS = 2 ** 31 - 1
const LOOPBACK = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/

/** Validates the options. Throws a TypeError that names the option which cannot work. */
export function readOptions(options: ClientOptions): Settings {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS))
    throw new TypeError(`timeoutMs must be more than 0 and less than 2^31; got ${timeoutMs}.`)
  if (!/^[\x21-\x7e]+$/.test(options.apiKey)) throw new TypeError('apiKey must be printable ASCII without blanks.')
  const [licenseKey, otherLicenseKey = null] = possibleLicenseKeys(options.licenseKey)
  if (licenseKey === '') throw new TypeError('licenseKey must not be empty.')
  return {
    baseUrl: readBaseUrl(options.baseUrl, options.allowHttp === true),
    apiKey: options.apiKey,
    keys: readKeys(options.publicKeys),
    licenseKey,
    otherLicenseKey,
    productId: readProductId(options.productId),
    entitlements: options.entitlements === true,
    // A check treats an empty id as none (docs/api.md#h3), but a request for a file rejects it.
    machineId: options.machineId || undefined,
    hostname: options.hostname ?? undefined,
    storage: options.storage,
    timeoutMs,
    fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
    now: readClock(options.now ?? Date.now),
    onRefresh: unfailing(options.onRefresh),
    onStorageError: unfailing(options.onStorageError),
  }
}

function readBaseUrl(text: string, allowHttp: boolean): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new TypeError(`baseUrl must be an https address such as https://licenses.example.com; got "${text}".`)
  const url = new URL(text)
  if (url.protocol === 'http:' && !allowHttp && !LOOPBACK.test(url.hostname))
    throw new TypeError(
      `baseUrl must use https, because anybody on the way could respond in place of the service; got "${text}". ` +
        'Set allowHttp to true for a network that you trust.',
    )
  // `fetch` rejects such addresses.
  if (url.username !== '' || url.password !== '') throw new TypeError('baseUrl must not contain a user or a password.')
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

/** Ids are compared exactly, and the service writes them in lower case. An empty id would silently accept every product. */
function readProductId(productId: string | null | undefined): string | null {
  if (productId === '') throw new TypeError('productId must not be empty. Leave it out to accept every product.')
  return productId?.toLowerCase() ?? null
}

function readKeys(publicKeys: readonly PublicKey[]): VerificationKey[] {
  if (publicKeys.length === 0) throw new TypeError('publicKeys must contain at least one key.')
  return publicKeys.map(({ keyId, publicKey }) => {
    const bytes = spkiToPublicKey(publicKey)
    if (bytes === null) throw new TypeError(`publicKeys: ${keyId} is not an Ed25519 public key.`)
    return { keyId, publicKey: bytes }
  })
}

/** Wraps the clock: it returns NaN when the app's clock throws. */
function readClock(now: () => number): () => number {
  return () => {
    try {
      return now()
    } catch {
      return Number.NaN
    }
  }
}

/** Wraps a callback of the app: errors that it throws or rejects with do not reach the call that caused it. */
function unfailing<Value>(callback: ((value: Value) => unknown) | undefined): (value: Value) => void {
  return (value) => {
    ;(async () => callback?.(value))().catch(() => undefined)
  }
}
