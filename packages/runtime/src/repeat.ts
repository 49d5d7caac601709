import { setTimeout as sleep } from 'node:timers/promises'

import type { Logger } from './log.ts'

export interface RepeatOptions {
  /** The pause after each run, unless the run returns another one. */
  everyMs: number
  onError: (error: unknown) => void
}

/**
 * Runs the task at once and again after each pause, so two runs never overlap. An error does not end the repetition. The timer does not keep
 * the process alive. The returned function ends the repetition, and resolves when the run in progress has ended.
 */
export function repeat(
  task: (signal: AbortSignal) => Promise<number | void>,
  { everyMs, onError }: RepeatOptions,
): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  const run = async (): Promise<void> => {
    while (!signal.aborted) {
      const pauseMs = await task(signal).catch(onError)
      await sleep(pauseMs ?? everyMs, undefined, { signal, ref: false }).catch(() => undefined)
    }
  }
  const done = run()
  return () => {
    stopping.abort()
    return done
  }
}

export interface ThrottledLogOptions {
  level?: 'warn' | 'error'
  intervalMs?: number
}

/**
 * Returns a function that logs the message with the given fields: the first call at once, and then at most one call per interval, because an
 * outage may cause many errors a second. The field `suppressed` of an entry is the number of calls since the previous entry that were not
 * logged.
 */
export function throttledLog(
  log: Pick<Logger, 'warn' | 'error'>,
  message: string,
  { level = 'warn', intervalMs = 5_000 }: ThrottledLogOptions = {},
): (fields: object) => void {
  let silentUntilMs = -Infinity
  let suppressed = 0
  return (fields) => {
    const nowMs = performance.now()
    if (nowMs < silentUntilMs) {
      suppressed++
      return
    }
    log[level]({ ...fields, ...(suppressed > 0 ? { suppressed } : {}) }, message)
    silentUntilMs = nowMs + intervalMs
    suppressed = 0
  }
}
