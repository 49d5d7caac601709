/**
 * Keeps one part of the system running: a part that ends without being asked is started again, at first at once, then
 * after longer and longer pauses. After `stop` nothing is started any more.
 */
import { setTimeout as sleep } from 'node:timers/promises'

/** A part that runs: a process with its ways to end. */
export interface Running {
  /** Resolves when it has ended, whoever ended it. */
  readonly ended: Promise<void>
  readonly stop: () => Promise<void>
}

export interface Kept<T extends Running> {
  /** The one that runs now, or ran last. */
  readonly current: () => T
  readonly stop: () => Promise<void>
}

export interface Pauses {
  firstMs: number
  longestMs: number
  /** A part that ran this long is taken for sound again. */
  calmMs: number
}

const PAUSES: Pauses = { firstMs: 100, longestMs: 5_000, calmMs: 30_000 }

/** Rejects when the first start fails; later failures are reported and tried again. */
export async function keepRunning<T extends Running>(
  name: string,
  begin: () => Promise<T>,
  report: (line: string) => void,
  pauses: Pauses = PAUSES,
): Promise<Kept<T>> {
  let current = await begin()
  const stopping = new AbortController()
  let pauseMs = pauses.firstMs

  /** Returns when a new one runs, or `stop` came. */
  async function beginAgain(): Promise<void> {
    while (!stopping.signal.aborted) {
      await sleep(pauseMs, undefined, { signal: stopping.signal }).catch(() => undefined)
      if (stopping.signal.aborted) return
      pauseMs = Math.min(pauseMs * 2, pauses.longestMs)
      try {
        current = await begin()
        report(`${name} runs again.`)
        return
      } catch (error) {
        report(`${name} could not be started again: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
  }

  async function watch(): Promise<void> {
    while (!stopping.signal.aborted) {
      const begunAt = performance.now()
      await current.ended
      if (stopping.signal.aborted) return
      if (performance.now() - begunAt >= pauses.calmMs) pauseMs = pauses.firstMs
      report(`${name} ended unexpectedly; it is started again.`)
      await beginAgain()
    }
  }

  const watching = watch()
  return {
    current: () => current,
    stop: async () => {
      stopping.abort()
      await current.stop()
      await watching
      await current.stop() // one that was being started when the stop came
    },
  }
}
