/**
 * The client for customers' apps: the service decides when it can be reached, a signed file when it cannot.
 * Invariant: a check that the service answered is never decided by a file, and a refusal ends the file.
 */

import { boundedStorage } from './cache/bounded-storage.ts'
import { createFileKeeper } from './cache/file-cache.ts'
import { judgeMemory } from './cache/judge-file.ts'
import { type Change, createStore } from './cache/store.ts'
import { type ClientOptions, readOptions } from './options.ts'
import type { DeactivationResult, ImportResult, RefreshResult, ValidationResult } from './results.ts'
import { activateEndpoint, deactivateEndpoint, validateEndpoint, type Verdict } from './transport/endpoints.ts'
import type { Endpoint, Outage, ServiceResponse } from './transport/http.ts'
import { configurationError, unreachable } from './transport/outcomes.ts'
import { call } from './transport/retry.ts'

export interface LicenseClient {
  /** Checks the license: online where possible, else with the stored file (API document, Client strategy). */
  validate(): Promise<ValidationResult>
  /** As `validate`, and tells the service the name of this machine. */
  activate(): Promise<ValidationResult>
  /** Releases this machine's slot and forgets the stored file. Works online only. */
  deactivate(): Promise<DeactivationResult>
  /** Fetches and stores a new license file now. `validate` and `activate` do so by themselves when it is due. */
  refreshFile(): Promise<RefreshResult>
  /** Stores a license file that came another way, for a machine that is never online. It has to be good now. */
  importFile(file: string): Promise<ImportResult>
  /** Resolves when no file is being fetched in the background: worth awaiting before a short program ends. */
  settled(): Promise<void>
}

/** Makes a client. Throws a TypeError for options that cannot work; afterwards nothing throws. */
export function createLicenseClient(options: ClientOptions): LicenseClient {
  const settings = readOptions(options)
  const store = createStore(boundedStorage(settings.storage, settings.timeoutMs), settings.onStorageError)
  const keeper = createFileKeeper(settings, store)

  async function check(endpoint: Endpoint<Verdict>): Promise<ValidationResult> {
    const outcome = await call(settings, endpoint)
    if (outcome.kind === 'response') return decideOnline(outcome)
    if (outcome.kind === 'outage') return decideOffline(outcome)
    return { valid: false, expiresAt: null, ...configurationError(outcome) }
  }

  async function decideOnline({ value: verdict, dateMs }: ServiceResponse<Verdict>): Promise<ValidationResult> {
    const nowMs = settings.now()
    // The service's clock replaces what was seen: a device whose clock once ran ahead is set right by it.
    await store.change(() => ({
      ...(dateMs === null ? sawTime(nowMs) : { toldMs: dateMs }),
      ...(verdict.valid ? {} : keeper.forget()),
    }))
    if (!verdict.valid) return { source: 'online', expiresAt: null, ...verdict }
    keeper.keepFresh(verdict.expiresAt)
    return { source: 'online', code: 'VALID', ...verdict }
  }

  async function decideOffline({ cause }: Outage): Promise<ValidationResult> {
    const nowMs = settings.now()
    const judged = judgeMemory(settings, await store.load(), nowMs)
    await store.change(() => sawTime(nowMs))
    const source = 'offline'
    if (!judged.ok) {
      return { source, valid: false, code: 'OFFLINE_REFUSED', expiresAt: null, reason: judged.reason, cause }
    }
    const { policy, refreshAfter } = judged.payload
    return { source, valid: true, code: 'VALID', expiresAt: policy.expiresAt, refreshAfter, cause }
  }

  async function deactivate(): Promise<DeactivationResult> {
    const reply = await call(settings, deactivateEndpoint(settings))
    if (reply.kind === 'outage') return { deactivated: false, ...unreachable(reply) }
    if (reply.kind === 'misconfiguration') return { deactivated: false, ...configurationError(reply) }
    await store.change(() => keeper.forget())
    return reply.value.deactivated
      ? { source: 'online', deactivated: true, code: 'DEACTIVATED' }
      : { source: 'online', deactivated: false, code: 'NOT_ACTIVE' }
  }

  async function importFile(text: string): Promise<ImportResult> {
    const file = text.trim()
    const { latestSeenMs } = await store.load()
    const judged = judgeMemory(settings, { file, latestSeenMs }, settings.now())
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
    refreshFile: () => keeper.refresh(),
    importFile,
    settled: () => keeper.settled(),
  }
}

function sawTime(nowMs: number): Change {
  return Number.isFinite(nowMs) ? { seenMs: nowMs } : {}
}
