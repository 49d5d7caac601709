/**
 * Restarts a process when it ends unexpectedly, after delays that increase with each restart. After `stop`, the process is not started
 * again.
 */

import { setTimeout as sleep } from 'node:timers/promises'

/** A running process, such as a service or Postgres. */
export interface Running {
  /** Resolves when the process has ended for any reason. */
  readonly ended: Promise<void>
  readonly stop: () => Promise<void>
}

export interface Supervised<T extends Running> {
  /** Returns the running process or, during a restart, the previous one. */
  readonly current: () => T
  readonly stop: () => Promise<void>
}

/** The delays before restarts. Each delay is twice the previous one, but at most `maxMs`. */
interface Backoff {
  firstMs: number
  maxMs: number
  /** The time for which a process must run so that the next delay is `firstMs` again. */
  resetAfterMs: number
}

const BACKOFF: Backoff = { firstMs: 100, maxMs: 5_000, resetAfterMs: 30_000 }

/** Starts a process and supervises it. Rejects if the first start fails. Later failures are reported and retried. */
export async function supervise<T extends Running>(
  name: string,
  start: () => Promise<T>,
  report: (line: string) => void,
  backoff: Backoff = BACKOFF,
): Promise<Supervised<T>> {
  let current = await start()
  const stopping = new AbortController()
  let delayMs = backoff.firstMs

  /** Resolves when a new process runs, or after `stop`. */
  async function restart(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      delayMs = Math.min(delayMs * 2, backoff.maxMs)
      try {
        current = await start()
        report(`${name} has restarted.`)
        return
      } catch (error) {
        report(`${name} could not be restarted: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      await current.ended
      if (stopping.signal.aborted) return
      if (performance.now() - startedAt >= backoff.resetAfterMs) delayMs = backoff.firstMs
      report(`${name} ended unexpectedly; restarting it.`)
      await restart()
    }
  }

  const watching = watch()
  return {
    current: () => current,
    stop: async () => {
      stopping.abort()
      await current.stop()
      await watching
      await current.stop() // A new process may have started meanwhile.
    },
  }
}
