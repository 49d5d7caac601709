/**
 * What an app gives to the client, and what the client makes of it once. A mistake here is the developer's, so this is
 * the one place that throws.
 */

import { spkiToPublicKey, type VerificationKey } from '@keyward/license-file'

import type { RefreshResult } from './results.ts'

/** Where the client keeps its one small text between runs. Both may fail or hang; the client goes on without. */
export interface LicenseStorage {
  /** What was written last, or null. */
  read(): Promise<string | null>
  /** Replaces the whole text at once: a crash leaves the old one or the new one, never a mixture. */
  write(text: string): Promise<void>
}

/** A public key of the organization as the service's `GET /api/v1/public-keys` gives it; the first two fields are enough. */
export interface PublicKey {
  keyId: string
  /** Standard base64 of the X.509 SubjectPublicKeyInfo. */
  publicKey: string
  algorithm?: string
  createdAt?: string
  retiredAt?: string | null
}

export interface ClientOptions {
  /** Base address of the service, such as `https://licenses.example.com`. A path in it is kept. */
  baseUrl: string
  /** API key of the organization. It ships with the app, so it is not a secret. */
  apiKey: string
  /** The organization's public keys, shipped with the app. Keys are never taken from the network. */
  publicKeys: readonly PublicKey[]
  licenseKey: string
  /**
   * Id of this machine; `machineId()` of `@keyward/client/node` makes one. Needed by licenses with a machine limit. An
   * empty one is none.
   */
  machineId?: string | null | undefined
  /** Name of this machine for people to read, sent by `activate`. */
  hostname?: string | null | undefined
  storage: LicenseStorage
  /**
   * Time budget of one call, with all its retries: more than 0, less than 2^31. Default 5,000. A storage that has not
   * answered after as much again counts as failed.
   */
  timeoutMs?: number
  /** In place of the global `fetch`. */
  fetch?: typeof globalThis.fetch
  /** The device's clock, in milliseconds since 1970; one that tells no time is refused offline. Default `Date.now`. */
  now?: () => number
  /** Told how every refresh of the file in the background ended. What it throws is ignored. */
  onRefresh?: (result: RefreshResult) => void
  /** Told when the storage failed; the call goes on. What it throws is ignored. */
  onStorageError?: (error: unknown) => void
}

/** `ClientOptions`, checked and completed. */
export interface Settings {
  baseUrl: URL
  apiKey: string
  keys: readonly VerificationKey[]
  licenseKey: string
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
// What timers take; they end at once when they are given more.
const LONGEST_TIMEOUT_MS = 2 ** 31 - 1

/** Throws a TypeError that names the option for an address, a key or a time budget that cannot work. */
export function readOptions(options: ClientOptions): Settings {
  const { timeoutMs = DEFAULT_TIMEOUT_MS } = options
  if (!(timeoutMs > 0 && timeoutMs <= LONGEST_TIMEOUT_MS))
    throw new TypeError('timeoutMs must be more than 0 and less than 2^31.')
  if (!/^[\x21-\x7e]+$/.test(options.apiKey)) throw new TypeError('apiKey must be printable ASCII without blanks.')
  if (options.licenseKey === '') throw new TypeError('licenseKey must not be empty.')
  return {
    baseUrl: readBaseUrl(options.baseUrl),
    apiKey: options.apiKey,
    keys: readKeys(options.publicKeys),
    licenseKey: options.licenseKey,
    // Empty is none, as in a check; a request for a file takes none or one.
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

function readBaseUrl(text: string): URL {
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new TypeError('baseUrl must be an http or https address.')
  const url = new URL(text)
  // Fetch takes no such address.
  if (url.username !== '' || url.password !== '') throw new TypeError('baseUrl must not hold a user or a password.')
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

function readKeys(publicKeys: readonly PublicKey[]): VerificationKey[] {
  if (publicKeys.length === 0) throw new TypeError('publicKeys must hold at least one key.')
  return publicKeys.map(({ keyId, publicKey }) => {
    const bytes = spkiToPublicKey(publicKey)
    if (bytes === null) throw new TypeError(`publicKeys: ${keyId} is not an Ed25519 public key.`)
    return { keyId, publicKey: bytes }
  })
}

/** A clock that fails tells no time. */
function readClock(now: () => number): () => number {
  return () => {
    try {
      return now()
    } catch {
      return Number.NaN
    }
  }
}

/** Tells the app; what its own function throws, or rejects with, is no failure of the call that told it. */
function unfailing<Value>(tell: ((value: Value) => unknown) | undefined): (value: Value) => void {
  return (value) => {
    ;(async () => tell?.(value))().catch(() => undefined)
  }
}
