/**
 * Keeps a current license file on the device. While the service is reachable, the cache fetches new files long before the stored file
 * expires. Invariants: at most one fetch runs at a time. A new file is stored only if it is for this license and signed by a shipped key. A
 * file that was requested before a rejection is not stored after the rejection.
 */

import type { Settings } from '../options.ts'
import type { RefreshResult } from '../results.ts'
import { fileEndpoint } from '../transport/endpoints.ts'
import { configurationError, unreachable } from '../transport/outcomes.ts'
import { call } from '../transport/retry.ts'
import { authenticate, judgeMemory } from './judge-file.ts'
import type { Memory, Store, StoreChange } from './store.ts'

export interface FileCache {
  /** The number of recorded rejections. A check reads this number before its request and passes it to `accept`. */
  readonly rejections: number
  /** Fetches a file now, or waits for the fetch in progress. */
  refresh(): Promise<RefreshResult>
  /**
   * Fetches a file in the background if the stored file is not good, its expiry is not `expiresAt`, or a day or half of its lifetime has
   * passed, whichever is shorter.
   */
  keepFresh(expiresAt: string | null): void
  /** Returns the change that ends the use of the file. `code` is the code of the rejection or `DEACTIVATED`. */
  reject(code: string): StoreChange
  /** Returns the change that allows the use of the file again, unless a rejection came after `rejectionsBefore`. */
  accept(rejectionsBefore: number): StoreChange
  /** Resolves when no fetch runs in the background. */
  settled(): Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000
// The minimum time between two fetches in the background, for any rate of checks and even with a wrong clock.
const BACKGROUND_PAUSE_MS = 60 * 1000

export function createFileCache(settings: Settings, store: Store): FileCache {
  let inProgress: Promise<RefreshResult> | null = null
  let background: Promise<unknown> = Promise.resolve()
  let nextInBackgroundMs = 0
  let rejections = 0

  async function refreshOnce(): Promise<RefreshResult> {
    const rejectionsBefore = rejections
    const fetched = await fetchFile(settings)
    if (!('file' in fetched)) return fetched
    let isCurrent = false
    const stored = await store.change(() => {
      isCurrent = rejections === rejectionsBefore
      return isCurrent ? { file: fetched.file } : {}
    })
    return stored && isCurrent ? fetched.result : { source: 'online', refreshed: false, code: 'NOT_STORED' }
  }

  function refresh(): Promise<RefreshResult> {
    inProgress ??= refreshOnce().finally(() => {
      inProgress = null
    })
    return inProgress
  }

  async function refreshIfNeeded(expiresAt: string | null): Promise<void> {
    if (!isOutdated(settings, await store.load(), expiresAt) || performance.now() < nextInBackgroundMs) return
    nextInBackgroundMs = performance.now() + BACKGROUND_PAUSE_MS
    settings.onRefresh(await refresh())
  }

  return {
    get rejections() {
      return rejections
    },
    refresh,
    keepFresh(expiresAt) {
      background = Promise.all([background, refreshIfNeeded(expiresAt)])
    },
    reject(code) {
      rejections++
      return { rejectedAs: code }
    },
    accept(rejectionsBefore) {
      return rejections === rejectionsBefore ? { rejectedAs: null } : {}
    },
    async settled() {
      await background
    },
  }
}

/** Returns whether `keepFresh` must fetch a new file. */
function isOutdated(settings: Settings, memory: Memory, expiresAt: string | null): boolean {
  const nowMs = settings.now()
  const judged = judgeMemory(settings, memory, nowMs)
  if (!judged.ok) return true
  const { issuedAt, refreshAfter, policy } = judged.payload
  const issuedMs = Date.parse(issuedAt)
  const halfLifeMs = (Date.parse(refreshAfter) - issuedMs) / 2
  return policy.expiresAt !== expiresAt || nowMs >= issuedMs + Math.min(DAY_MS, halfLifeMs)
}

type Refreshed = Extract<RefreshResult, { refreshed: true }>

/** Fetches a file and authenticates it. Returns the failed refresh result if the service sends no authentic file. */
async function fetchFile(
  settings: Settings,
): Promise<{ file: string; result: Refreshed } | Exclude<RefreshResult, Refreshed>> {
  const outcome = await call(settings, fileEndpoint(settings))
  if (outcome.kind === 'outage') return { refreshed: false, ...unreachable(outcome) }
  if (outcome.kind === 'misconfiguration') return { refreshed: false, ...configurationError(outcome) }
  if ('code' in outcome.value) return { source: 'online', refreshed: false, ...outcome.value }
  const { file } = outcome.value
  // The times of the file are judged when the file is used, because the clock of the device may be wrong now and corrected later.
  const authentic = authenticate(settings, file)
  if (!authentic.ok) return { source: 'online', refreshed: false, code: 'BAD_FILE', reason: authentic.reason }
  const { policy, refreshAfter } = authentic.payload
  const result = {
    source: 'online',
    refreshed: true,
    code: 'REFRESHED',
    expiresAt: policy.expiresAt,
    refreshAfter,
  } as const
  return { file, result }
}
