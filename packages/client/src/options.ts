/**
 * The options of the client and their validation. An invalid option is a mistake of the app's developer, so the validation throws, unlike
 * the client's calls.
 */

import { spkiToPublicKey, type VerificationKey } from '@keyward/license-file'

import { possibleLicenseKeys } from './license-key.ts'
import type { RefreshResult } from './results.ts'

/** Stores one small text of the client between runs. If a method fails or hangs, the client continues without the storage. */
export interface LicenseStorage {
  /** Returns the text that was written last, or null. */
  read(): Promise<string | null>
  /** Replaces the text atomically. A crash leaves either the old or the new text. */
  write(text: string): Promise<void>
}

/** A public key of the organization from `GET /api/v1/public-keys`. Only `keyId` and `publicKey` are required. */
export interface PublicKey {
  keyId: string
  /** The standard base64 of the X.509 SubjectPublicKeyInfo. */
  publicKey: string
  algorithm?: string
  createdAt?: string
  retiredAt?: string | null
}

export interface ClientOptions {
  /** The base URL of the service, such as `https://licenses.example.com`. It may contain a path. */
  baseUrl: string
  /**
   * If true, `baseUrl` may use `http:` for hosts other than this machine. Default: false. With http, anyone on the network path can forge
   * responses of the service.
   */
  allowHttp?: boolean
  /** The API key of the organization. The app contains it, so it is not a secret. */
  apiKey: string
  /** The organization's public keys, shipped with the app. The client never loads keys from the network. */
  publicKeys: readonly PublicKey[]
  /**
   * The license key as the user typed it. It is sent without surrounding blanks. The key can be another spelling of a generated
   * key `XXXX-XXXX-XXXX-XXXX`: in lower case, without hyphens, or with blanks. If such a key is unknown to the service, the
   * client tries the generated key with a second request.
   */
  licenseKey: string
  /**
   * The product id of the app. With this option, license files of other products are rejected with `WRONG_PRODUCT`, including files of
   * earlier versions, which contain no product id. For online checks, use an API key that is bound to the product.
   */
  productId?: string | null | undefined
  /**
   * If true, the client accepts only responses that the service has signed for exactly its request (docs/api.md#g1). Any other response counts
   * as an outage, so the stored file decides. Default: false. Requires `crypto.subtle`, which pages have only over https.
   */
  requireSignature?: boolean
  /** If true, `validate` and `activate` return the entitlements of the license. Default: false. */
  entitlements?: boolean
  /**
   * The id of this machine, such as the result of `machineId()` of `@keyward/client/node`. Licenses with a machine limit
   * require it. An empty id counts as absent.
   */
  machineId?: string | null | undefined
  /** A name by which people recognize this machine. `activate` sends it. */
  hostname?: string | null | undefined
  storage: LicenseStorage
  /**
   * The time budget of one call and its retries, in milliseconds. It must be more than 0 and less than 2^31. Default: 5,000. An operation
   * of the storage that takes longer counts as failed.
   */
  timeoutMs?: number
  /** A replacement for the global `fetch`. */
  fetch?: typeof globalThis.fetch
  /** The device's clock, in milliseconds since 1970. Default: `Date.now`. If the clock throws, offline checks reject the file. */
  now?: () => number
  /** A callback that receives the result of every refresh in the background. Its errors are ignored. */
  onRefresh?: (result: RefreshResult) => void
  /** A callback that receives the errors of the storage. Its errors are ignored. */
  onStorageError?: (error: unknown) => void
}

/** Validated `ClientOptions` with all defaults. */
export interface Settings {
  baseUrl: URL
  apiKey: string
  keys: readonly VerificationKey[]
  licenseKey: string
  /** The license key to try if `licenseKey` is unknown to the service, or null. */
  otherLicenseKey: string | null
  productId: string | null
  requireSignature: boolean
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
// The longest delay of a timer in milliseconds. A timer with a longer delay fires immediately.
const MAX_TIMEOUT_MS = 2 ** 31 - 1
const LOOPBACK = /^(?:localhost|.+\.localhost|127(?:\.\d+){3}|\[::1\])$/

/** Validates the options. Throws a TypeError that names the invalid option. */
export function readOptions(options: ClientOptions): Settings {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options
  if (!(timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS))
    throw new TypeError(`timeoutMs must be more than 0 and less than 2^31; got ${timeoutMs}.`)
  if (!/^[\x21-\x7e]+$/.test(options.apiKey))
    throw new TypeError('apiKey must consist of printable ASCII characters without blanks.')
  const [licenseKey, otherLicenseKey = null] = possibleLicenseKeys(options.licenseKey)
  if (licenseKey === '') throw new TypeError('licenseKey must not be empty.')
  return {
    baseUrl: readBaseUrl(options.baseUrl, options.allowHttp === true),
    apiKey: options.apiKey,
    keys: readKeys(options.publicKeys),
    licenseKey,
    otherLicenseKey,
    productId: readProductId(options.productId),
    requireSignature: readRequireSignature(options.requireSignature),
    entitlements: options.entitlements === true,
    // An empty id counts as absent (docs/api.md#h3).
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

/** Returns whether the program can hash. Pages over http have no `crypto.subtle`, unlike its type says. */
export function hasHashes(): boolean {
  return 'subtle' in globalThis.crypto
}

function readRequireSignature(isRequired = false): boolean {
  if (isRequired && !hasHashes())
    throw new TypeError('requireSignature needs crypto.subtle, which pages have only over https.')
  return isRequired
}

function readBaseUrl(text: string, allowHttp: boolean): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new TypeError(`baseUrl must be an https URL such as https://licenses.example.com; got "${text}".`)
  const url = new URL(text)
  if (url.protocol === 'http:' && !allowHttp && !LOOPBACK.test(url.hostname))
    throw new TypeError(
      `baseUrl must use https, because anyone on the network path can forge responses over http; got "${text}". ` +
        'Set allowHttp to true for a trusted network.',
    )
  // `fetch` rejects URLs with credentials.
  if (url.username !== '' || url.password !== '')
    throw new TypeError('baseUrl must not contain a user name or a password.')
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

/** Converts a product id to lower case, as in license files. Throws for an empty id, which would accept files of all products. */
function readProductId(productId: string | null | undefined): string | null {
  if (productId === '') throw new TypeError('productId must not be empty. Omit it to accept files of all products.')
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

/** Wraps the clock of the app. The returned function returns NaN when the clock throws. */
function readClock(now: () => number): () => number {
  return () => {
    try {
      return now()
    } catch {
      return Number.NaN
    }
  }
}

/** Wraps a callback of the app. The returned function ignores thrown errors and rejections. */
function unfailing<Value>(callback: ((value: Value) => unknown) | undefined): (value: Value) => void {
  return (value) => {
    ;(async () => callback?.(value))().catch(() => undefined)
  }
}
