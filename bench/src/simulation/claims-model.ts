/**
 * Simulates how long a new machine waits for its slot. Each validator sends one statement at a time, with the claims that have arrived
 * meanwhile, at most `mostInStatement`. The statements share the server's cores. Each statement ends with a commit that waits for the disk
 * or a synchronous standby.
 */

import { EventQueue } from './event-queue.ts'
import { quantiles } from './propagation-model.ts'
import { Cores } from './server-cores.ts'

export interface ClaimsModel {
  validators: number
  cores: number
  /** The core time of Postgres for a statement, and the additional time for each claim in it. */
  statementMs: number
  claimMs: number
  /** The time that a commit waits for the disk or a standby. It takes no core time. */
  commitMs: number
  roundTripMs: number
  /** The number of claims a second of all validators together. */
  claimsPerSecond: number
  seconds: number
  mostInStatement: number
  next: () => number
}

export interface ClaimsReport {
  p50Ms: number
  p99Ms: number
  /** The mean number of claims per statement. */
  batch: number
}

interface Queue {
  isSending: boolean
  waiting: number[]
}

export function simulateClaims(model: ClaimsModel): ClaimsReport {
  const events = new EventQueue()
  const cores = new Cores(events, model.cores)
  const queues = Array.from({ length: model.validators }, (): Queue => ({ isSending: false, waiting: [] }))
  const latencies: number[] = []
  let statements = 0

  const send = (queue: Queue): void => {
    const batch = queue.waiting.splice(0, model.mostInStatement)
    if (batch.length === 0) return
    queue.isSending = true
    statements++
    events.after(model.roundTripMs / 2, () =>
      cores.serve(model.statementMs + batch.length * model.claimMs, () =>
        events.after(model.commitMs + model.roundTripMs / 2, () => {
          for (const claimedMs of batch) latencies.push(events.nowMs - claimedMs)
          queue.isSending = false
          send(queue)
        }),
      ),
    )
  }
  const arrive = (): void => {
    const queue = queues[Math.floor(model.next() * queues.length)]!
    queue.waiting.push(events.nowMs)
    if (!queue.isSending) send(queue)
    const gapMs = (-Math.log(1 - model.next()) * 1_000) / model.claimsPerSecond
    if (events.nowMs + gapMs < model.seconds * 1_000) events.after(gapMs, arrive)
  }
  arrive()
  events.run()
  return { ...quantiles(latencies), batch: latencies.length / Math.max(1, statements) }
}
