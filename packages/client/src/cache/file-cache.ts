/**
 * Keeps a fresh license file on the device: fetches a new one while the service can be reached, long before the old one
 * runs out. Invariants: never more than one fetch at a time; only a file for this license, signed by a shipped key, ever
 * replaces another; what was asked for before a refusal is not stored after it.
 */

import type { Settings } from '../options.ts'
import type { RefreshResult } from '../results.ts'
import { fileEndpoint } from '../transport/endpoints.ts'
import { configurationError, unreachable } from '../transport/outcomes.ts'
import { call } from '../transport/retry.ts'
import { authenticate, judgeMemory } from './judge-file.ts'
import type { Change, Memory, Store } from './store.ts'

export interface FileKeeper {
  /** Fetches a file now, or joins the fetch that is under way. */
  refresh(): Promise<RefreshResult>
  /** In the background: fetches a file if the remembered one is missing, not good, a day old, or of another expiry. */
  keepFresh(expiresAt: string | null): void
  /** The change that ends the file, for when the service refused or the machine was deactivated. */
  forget(): Change
  /** Resolves when nothing is under way in the background. */
  settled(): Promise<void>
}

const DAY_MS = 24 * 60 * 60 * 1000
// However often the app asks, and however wrong its clock is: a fetch in the background follows another by a minute.
const BACKGROUND_PAUSE_MS = 60 * 1000

export function createFileKeeper(settings: Settings, store: Store): FileKeeper {
  let underWay: Promise<RefreshResult> | null = null
  let background: Promise<unknown> = Promise.resolve()
  let nextInBackgroundMs = 0
  let forgotten = 0

  async function refreshOnce(): Promise<RefreshResult> {
    const forgottenBefore = forgotten
    const fetched = await fetchFile(settings)
    if (!('file' in fetched)) return fetched
    let kept = false
    const stored = await store.change(() => {
      kept = forgotten === forgottenBefore
      return kept ? { file: fetched.file } : {}
    })
    return stored && kept ? fetched.result : { source: 'online', refreshed: false, code: 'NOT_STORED' }
  }

  function refresh(): Promise<RefreshResult> {
    underWay ??= refreshOnce().finally(() => {
      underWay = null
    })
    return underWay
  }

  async function refreshIfNeeded(expiresAt: string | null): Promise<void> {
    if (!isOutdated(settings, await store.load(), expiresAt) || performance.now() < nextInBackgroundMs) return
    nextInBackgroundMs = performance.now() + BACKGROUND_PAUSE_MS
    settings.onRefresh(await refresh())
  }

  return {
    refresh,
    keepFresh(expiresAt) {
      background = Promise.all([background, refreshIfNeeded(expiresAt)])
    },
    forget() {
      forgotten++
      return { file: null }
    },
    async settled() {
      await background
    },
  }
}

/** A renewed or shortened license has another expiry than its file, which is then outdated at once. */
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

/** A file that may be stored, or why there is none. */
async function fetchFile(
  settings: Settings,
): Promise<{ file: string; result: Refreshed } | Exclude<RefreshResult, Refreshed>> {
  const reply = await call(settings, fileEndpoint(settings))
  if (reply.kind === 'outage') return { refreshed: false, ...unreachable(reply) }
  if (reply.kind === 'misconfiguration') return { refreshed: false, ...configurationError(reply) }
  if ('code' in reply.value) return { source: 'online', refreshed: false, ...reply.value }
  const { file } = reply.value
  // Its times are judged when it is used: a device whose clock is wrong today may have it set right tomorrow.
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
