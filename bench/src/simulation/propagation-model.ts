/**
 * Simulates how long a change takes to reach every validator on one Postgres. Each commit wakes every listener. Each listener then reads
 * the change log once, and once more if another commit wakes the listener during the read. The reads share the server's cores. A relay
 * reads the change log once and forwards the changes to its validators.
 */

import { EventQueue } from './event-queue.ts'
import { Cores } from './server-cores.ts'

export interface PropagationModel {
  validators: number
  /** The cores of Postgres that read the change log. */
  cores: number
  /** The core time of Postgres for one read. */
  readMs: number
  /** The round trip between a listener and Postgres. */
  roundTripMs: number
  changesPerSecond: number
  seconds: number
  /** The number of relays, which listen instead of the validators. When absent, every validator listens. */
  relays?: number
  /** The time that a relay needs per validator. */
  forwardMs?: number
  next: () => number
}

export interface PropagationReport {
  /** The percentiles, over all changes, of the time until the last validator has the change. */
  p50Ms: number
  p99Ms: number
  /** The share of the core time that reads take, from 0 to 1. */
  load: number
}

interface Listener {
  isReading: boolean
  isWoken: boolean
  /** The commit times of the changes that the listener has not yet read. */
  waiting: number[]
}

export function simulatePropagation(model: PropagationModel): PropagationReport {
  const events = new EventQueue()
  const cores = new Cores(events, model.cores)
  const readers = model.relays ?? model.validators
  const perReader = Math.ceil(model.validators / readers)
  // The last validator of a relay waits until the relay has forwarded the change to all of its other validators.
  const forwardMs = model.relays === undefined ? 0 : model.roundTripMs / 2 + perReader * (model.forwardMs ?? 0)
  const listeners = Array.from({ length: readers }, (): Listener => ({ isReading: false, isWoken: false, waiting: [] }))
  const missing = new Map<number, number>()
  const latencies: number[] = []

  const wake = (listener: Listener): void => {
    listener.isWoken = true
    if (!listener.isReading) read(listener)
  }
  const read = (listener: Listener): void => {
    listener.isReading = true
    listener.isWoken = false
    events.after(model.roundTripMs / 2, () => {
      const seen = listener.waiting
      listener.waiting = []
      cores.serve(model.readMs, () => events.after(model.roundTripMs / 2, () => apply(listener, seen)))
    })
  }
  const apply = (listener: Listener, seen: readonly number[]): void => {
    for (const committedMs of seen) {
      const left = (missing.get(committedMs) ?? 1) - 1
      missing.set(committedMs, left)
      if (left > 0) continue
      missing.delete(committedMs)
      latencies.push(events.nowMs + forwardMs - committedMs)
    }
    listener.isReading = false
    if (listener.isWoken) read(listener)
  }
  const commit = (): void => {
    const committedMs = events.nowMs
    missing.set(committedMs, readers)
    for (const listener of listeners) {
      listener.waiting.push(committedMs)
      events.after(model.roundTripMs / 2, () => wake(listener))
    }
    const gapMs = (-Math.log(1 - model.next()) * 1_000) / model.changesPerSecond
    if (committedMs + gapMs < model.seconds * 1_000) events.after(gapMs, commit)
  }
  commit()
  events.run()
  return { ...quantiles(latencies), load: cores.busyMs / (events.nowMs * model.cores) }
}

export function quantiles(values: readonly number[]): { p50Ms: number; p99Ms: number } {
  const sorted = values.toSorted((a, b) => a - b)
  const at = (quantile: number): number =>
    sorted[Math.min(sorted.length - 1, Math.floor(quantile * sorted.length))] ?? 0
  return { p50Ms: at(0.5), p99Ms: at(0.99) }
}
