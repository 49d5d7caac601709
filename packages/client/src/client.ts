/**
 * The client for apps. Invariants: a verdict of the service takes precedence over a file. A rejection ends the use of the file of its
 * license key until a later verdict is VALID.
 */

import { claimedLicenseKey, requestCodeOf } from '@keyward/license-file'

import { boundedStorage } from './cache/bounded-storage.ts'
import { createFileCache, type FileCache } from './cache/file-cache.ts'
import { judgeMemory } from './cache/judge-file.ts'
import { createStore, createTurns, type Store, type StoreChange } from './cache/store.ts'
import { offlineMessage } from './messages.ts'
import { type ClientOptions, hasHashes, readOptions, type Settings } from './options.ts'
import type { DeactivationResult, ImportResult, MachinesResult, RefreshResult, ValidationResult } from './results.ts'
import {
  activateEndpoint,
  deactivateEndpoint,
  machinesEndpoint,
  releaseEndpoint,
  validateEndpoint,
  type Verdict,
} from './transport/endpoints.ts'
import type { CallOutcome, Endpoint, Outage, ServiceResponse } from './transport/http.ts'
import { configurationError, unreachable } from './transport/outcomes.ts'
import { call } from './transport/retry.ts'

/** The options of a call. */
export interface CallOptions {
  /** When the signal is aborted, the call ends at once, and the service counts as unreachable with the cause `TIMEOUT`. */
  signal?: AbortSignal
}

export interface LicenseClient {
  /** Checks the license online, or with the stored file during an outage (docs/api.md#c1, #c2). */
  validate(options?: CallOptions): Promise<ValidationResult>
  /** Checks the license like `validate` and sends the name of this machine. */
  activate(options?: CallOptions): Promise<ValidationResult>
  /** Releases the slot of this machine. A released slot ends the use of the stored file. Requires the service. */
  deactivate(options?: CallOptions): Promise<DeactivationResult>
  /** Lists the machines that hold slots of the license, so that a person can choose which one to release. Requires the service. */
  machines(options?: CallOptions): Promise<MachinesResult>
  /** Releases the slot of another machine of the license. `ref` is that of a listed machine. Requires the service. */
  release(ref: string, options?: CallOptions): Promise<DeactivationResult>
  /** Fetches and stores a new license file now. `validate` and `activate` fetch a new file in the background when it is due. */
  refreshFile(): Promise<RefreshResult>
  /** Stores a license file that was obtained elsewhere, for a machine without network access. The file must be good now. */
  importFile(file: string): Promise<ImportResult>
  /**
   * Returns the code with which a person requests the license file of this machine, for a machine without network access. The vendor turns the
   * code into a file for `importFile`. Returns null without a `machineId`, and in a page over http.
   */
  requestCode(): Promise<string | null>
  /** Resolves when no fetch of a file runs in the background. Await this call before a short program ends. */
  settled(): Promise<void>
}

/** A license key that the typed text may mean, with its settings, stored file and background fetches. */
interface Candidate {
  settings: Settings
  store: Store
  cache: FileCache
}

function createCandidates(settings: Settings): readonly Candidate[] {
  const { licenseKey: typed, otherLicenseKey, timeoutMs, onStorageError } = settings
  const storage = boundedStorage(settings.storage, timeoutMs)
  const inTurn = createTurns()
  return [typed, otherLicenseKey].flatMap((licenseKey) => {
    if (licenseKey === null) return []
    const own = { ...settings, licenseKey }
    const store = createStore(storage, licenseKey, onStorageError, inTurn)
    return [{ settings: own, store, cache: createFileCache(own, store) }]
  })
}

/** Creates a client. Throws a TypeError for invalid options. The calls of the client never throw. */
export function createLicenseClient(options: ClientOptions): LicenseClient {
  const settings = readOptions(options)
  // The license keys that the typed text may mean. After the first verdict other than NOT_FOUND, only the key of that verdict remains.
  let candidates = createCandidates(settings)

  async function check(
    endpoint: (own: Settings) => Endpoint<Verdict>,
    given: CallOptions | undefined,
  ): Promise<ValidationResult> {
    const rest = [...candidates]
    for (;;) {
      const [candidate] = rest
      const rejectionsBefore = candidate!.cache.rejections
      const outcome = await callOf(candidate!, endpoint(candidate!.settings), given)
      if (outcome.kind === 'outage') return decideOffline(outcome, rest)
      if (outcome.kind === 'misconfiguration') return { valid: false, expiresAt: null, ...configurationError(outcome) }
      const result = await decideOnline(candidate!, outcome, rejectionsBefore)
      const isUnknown = result.code === 'NOT_FOUND'
      if (!isUnknown) candidates = [candidate!]
      if (!isUnknown || rest.length === 1) return result
      rest.shift()
    }
  }

  async function refreshFile(): Promise<RefreshResult> {
    const [first, second] = candidates
    const result = await first!.cache.refresh()
    return result.code === 'NOT_FOUND' && second !== undefined ? second.cache.refresh() : result
  }

  async function importFile(text: string): Promise<ImportResult> {
    const file = text.trim()
    const claimed = claimedLicenseKey(file)
    const { settings: own, store } = candidates.find((one) => one.settings.licenseKey === claimed) ?? candidates[0]!
    const memory = await store.load()
    const judged = judgeMemory(own, { ...memory, file, rejectedAs: null }, settings.now())
    if (!judged.ok) return { imported: false, reason: judged.reason }
    const { policy, refreshAfter } = judged.payload
    const stored = await store.change(() => ({ file }))
    return stored
      ? { imported: true, expiresAt: policy.expiresAt, refreshAfter }
      : { imported: false, reason: 'NOT_STORED' }
  }

  async function requestCode(): Promise<string | null> {
    // Until a verdict, the last candidate has the form of a generated key.
    const { licenseKey, machineId, hostname } = candidates.at(-1)!.settings
    if (machineId === undefined || !hasHashes()) return null
    return requestCodeOf({ licenseKey, machineId, hostname })
  }

  return {
    validate: (given) => check(validateEndpoint, given),
    activate: (given) => check(activateEndpoint, given),
    deactivate: (given) => releaseSlot(candidates, null, given),
    machines: (given) => listMachines(candidates, given),
    release: (ref, given) => releaseSlot(candidates, { ref }, given),
    refreshFile,
    importFile,
    requestCode,
    settled: async () => void (await Promise.all(candidates.map(({ cache }) => cache.settled()))),
  }
}

/** Calls an endpoint. Rejects responses that were signed before the latest stored one. */
async function callOf<Value>(
  { settings, store }: Candidate,
  endpoint: Endpoint<Value>,
  options: CallOptions | undefined,
): Promise<CallOutcome<Value>> {
  return call(settings, endpoint, settings.requireSignature ? (await store.load()).latestSignedMs : 0, options?.signal)
}

/** Releases the slot of another machine, or without one that of this machine. */
async function releaseSlot(
  among: readonly Candidate[],
  other: { ref: string } | null,
  given: CallOptions | undefined,
): Promise<DeactivationResult> {
  for (const candidate of among) {
    const { settings, store, cache } = candidate
    const endpoint = other === null ? deactivateEndpoint(settings) : releaseEndpoint(settings, other.ref)
    const outcome = await callOf(candidate, endpoint, given)
    if (outcome.kind === 'outage') return { deactivated: false, ...unreachable(outcome) }
    if (outcome.kind === 'misconfiguration') return { deactivated: false, ...configurationError(outcome) }
    if ('code' in outcome.value) return { source: 'online', deactivated: false, ...outcome.value }
    if (!outcome.value.deactivated) continue
    await store.change(() => ({
      ...sawSignature(outcome.signedMs),
      ...(other === null && cache.reject('DEACTIVATED')),
    }))
    return { source: 'online', deactivated: true, code: 'DEACTIVATED' }
  }
  return { source: 'online', deactivated: false, code: 'NOT_ACTIVE' }
}

async function listMachines(among: readonly Candidate[], given: CallOptions | undefined): Promise<MachinesResult> {
  let result: MachinesResult | undefined
  for (const { settings } of among) {
    const outcome = await call(settings, machinesEndpoint(settings), 0, given?.signal)
    if (outcome.kind === 'outage') return unreachable(outcome)
    if (outcome.kind === 'misconfiguration') return configurationError(outcome)
    result = { source: 'online', code: 'LISTED', ...outcome.value }
    if (result.code !== 'NOT_FOUND') break
  }
  return result!
}

async function decideOnline(
  { settings, store, cache }: Candidate,
  { value: verdict, dateMs, signedMs }: ServiceResponse<Verdict>,
  rejectionsBefore: number,
): Promise<ValidationResult> {
  const nowMs = settings.now()
  // The service's clock replaces the latest observed time, so that a device's clock that was ahead has no lasting effect. Anyone on the
  // network path can change the header `Date`, so only the signed time counts if a signature is required.
  await store.change(() => ({
    ...(signedMs !== null ? sawSignature(signedMs) : dateMs === null ? sawTime(nowMs) : { serviceMs: dateMs }),
    ...(verdict.valid ? cache.accept(rejectionsBefore) : cache.reject(verdict.code)),
  }))
  if (!verdict.valid) return { source: 'online', expiresAt: null, ...verdict }
  cache.keepFresh(verdict.expiresAt)
  return { source: 'online', code: 'VALID', ...verdict }
}

/** Decides with the first good file. Without a good file, returns the reason for the first license key that has a file. */
async function decideOffline({ cause, detail }: Outage, among: readonly Candidate[]): Promise<ValidationResult> {
  const nowMs = among[0]!.settings.now()
  const judgements = []
  for (const { settings, store } of among) {
    const memory = await store.load()
    judgements.push({ settings, store, memory, judged: judgeMemory(settings, memory, nowMs) })
  }
  const { settings, store, memory, judged } =
    judgements.find((one) => one.judged.ok) ?? judgements.find((one) => one.memory.file !== null) ?? judgements[0]!
  await store.change(() => sawTime(nowMs))
  const source = 'offline'
  if (!judged.ok) {
    const rejection = memory.rejectedAs === null ? {} : { rejectedAs: memory.rejectedAs }
    const { reason } = judged
    const message = offlineMessage(reason, memory.rejectedAs)
    return {
      source,
      valid: false,
      code: 'OFFLINE_REFUSED',
      expiresAt: null,
      reason,
      ...rejection,
      message,
      cause,
      detail,
    }
  }
  const { policy, refreshAfter, entitlements = {} } = judged.payload
  const unlocked = settings.entitlements ? { entitlements } : {}
  const { expiresAt, graceEndsAt } = policy
  const isInGrace = graceEndsAt !== undefined && expiresAt !== null && Date.parse(expiresAt) <= nowMs
  const grace = isInGrace ? { graceEndsAt } : {}
  return { source, valid: true, code: 'VALID', expiresAt, ...grace, refreshAfter, ...unlocked, cause, detail }
}

/** Returns the change for a time of the device's clock, or an empty change when the clock returned no time. */
function sawTime(nowMs: number): StoreChange {
  return Number.isFinite(nowMs) ? { seenMs: nowMs } : {}
}

/** Returns the change for the time of a signed response, or an empty change without one. */
function sawSignature(signedMs: number | null): StoreChange {
  return signedMs === null ? {} : { serviceMs: signedMs, signedMs }
}
