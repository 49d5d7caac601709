/**
 * The client for customers' apps: the service decides when it can be reached, a signed file when it cannot.
 * Invariant: a file never decides a check that the service responded to, and a rejection ends the use of the file of the
 * same license key until a later response is VALID.
 */

import { boundedStorage } from './cache/bounded-storage.ts'
import { createFileCache } from './cache/file-cache.ts'
import { judgeMemory } from './cache/judge-file.ts'
import { type Change, createStore } from './cache/store.ts'
import { type ClientOptions, readOptions } from './options.ts'
import type { DeactivationResult, ImportResult, RefreshResult, ValidationResult } from './results.ts'
import { activateEndpoint, deactivateEndpoint, validateEndpoint, type Verdict } from './transport/endpoints.ts'
import type { Endpoint, Outage, ServiceResponse } from './transport/http.ts'
import { configurationError, unreachable } from './transport/outcomes.ts'
import { call } from './transport/retry.ts'

export interface LicenseClient {
  /** Checks the license: online where possible, else with the stored file (docs/api.md#c1, #c2). */
  validate(): Promise<ValidationResult>
  /** Checks the license as `validate` does, and sends the name of this machine. */
  activate(): Promise<ValidationResult>
  /** Releases this machine's slot and ends the use of the stored file. Works online only. */
  deactivate(): Promise<DeactivationResult>
  /** Fetches and stores a new license file now. `validate` and `activate` do so by themselves when it is due. */
  refreshFile(): Promise<RefreshResult>
  /** Stores a license file from elsewhere, for a machine that is never online. The file has to be good now. */
  importFile(file: string): Promise<ImportResult>
  /** Resolves when no file is being fetched in the background. Await it before a short program ends. */
  settled(): Promise<void>
}

/** Creates a client. Throws a TypeError for options that cannot work. Its calls never throw. */
export function createLicenseClient(options: ClientOptions): LicenseClient {
  const settings = readOptions(options)
  const storage = boundedStorage(settings.storage, settings.timeoutMs)
  const store = createStore(storage, settings.licenseKey, settings.onStorageError)
  const cache = createFileCache(settings, store)

  async function check(endpoint: Endpoint<Verdict>): Promise<ValidationResult> {
    const rejectionsBefore = cache.rejections
    const outcome = await call(settings, endpoint)
    if (outcome.kind === 'response') return decideOnline(outcome, rejectionsBefore)
    if (outcome.kind === 'outage') return decideOffline(outcome)
    return { valid: false, expiresAt: null, ...configurationError(outcome) }
  }

  async function decideOnline(
    { value: verdict, dateMs }: ServiceResponse<Verdict>,
    rejectionsBefore: number,
  ): Promise<ValidationResult> {
    const nowMs = settings.now()
    // The service's clock replaces the latest time seen, which corrects a device whose clock once ran ahead.
    await store.change(() => ({
      ...(dateMs === null ? sawTime(nowMs) : { serviceMs: dateMs }),
      ...(verdict.valid ? cache.accept(rejectionsBefore) : cache.reject(verdict.code)),
    }))
    if (!verdict.valid) return { source: 'online', expiresAt: null, ...verdict }
    cache.keepFresh(verdict.expiresAt)
    return { source: 'online', code: 'VALID', ...verdict }
  }

  async function decideOffline({ cause, detail }: Outage): Promise<ValidationResult> {
    const nowMs = settings.now()
    const memory = await store.load()
    const judged = judgeMemory(settings, memory, nowMs)
    await store.change(() => sawTime(nowMs))
    const source = 'offline'
    if (!judged.ok) {
      const rejection = memory.rejectedAs === null ? {} : { rejectedAs: memory.rejectedAs }
      const { reason } = judged
      return { source, valid: false, code: 'OFFLINE_REFUSED', expiresAt: null, reason, ...rejection, cause, detail }
    }
    const { policy, refreshAfter } = judged.payload
    return { source, valid: true, code: 'VALID', expiresAt: policy.expiresAt, refreshAfter, cause, detail }
  }

  async function deactivate(): Promise<DeactivationResult> {
    const outcome = await call(settings, deactivateEndpoint(settings))
    if (outcome.kind === 'outage') return { deactivated: false, ...unreachable(outcome) }
    if (outcome.kind === 'misconfiguration') return { deactivated: false, ...configurationError(outcome) }
    await store.change(() => cache.reject('DEACTIVATED'))
    return outcome.value.deactivated
      ? { source: 'online', deactivated: true, code: 'DEACTIVATED' }
      : { source: 'online', deactivated: false, code: 'NOT_ACTIVE' }
  }

  async function importFile(text: string): Promise<ImportResult> {
    const file = text.trim()
    const { latestSeenMs } = await store.load()
    const judged = judgeMemory(settings, { file, rejectedAs: null, latestSeenMs }, settings.now())
    if (!judged.ok) return { imported: false, reason: judged.reason }
    const { policy, refreshAfter } = judged.payload
    const stored = await store.change(() => ({ file }))
    return stored
      ? { imported: true, expiresAt: policy.expiresAt, refreshAfter }
      : { imported: false, reason: 'NOT_STORED' }
  }

  return {
    validate: () => check(validateEndpoint(settings)),
    activate: () => check(activateEndpoint(settings)),
    deactivate,
    refreshFile: () => cache.refresh(),
    importFile,
    settled: () => cache.settled(),
  }
}

/** Returns the change for a time of the device's clock; none when the clock returned no time. */
function sawTime(nowMs: number): Change {
  return Number.isFinite(nowMs) ? { seenMs: nowMs } : {}
}
