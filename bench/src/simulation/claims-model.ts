import { EventQueue } from './event-queue.ts'
import { quantiles } from './propagation-model.ts'
// How long a new machine waits for its slot: each validator sends one statement at a time with every claim that has come
// meanwhile, the statements share the server's cores, and each ends with a commit that waits for the disk, and for a
// synchronous standby where there is one.
import { Cores } from './server-cores.ts'

export interface ClaimsModel {
  validators: number
  cores: number
  /** Work of the server for a statement, and for each claim in it. */
  statementMs: number
  claimMs: number
  /** A commit's wait for the disk and for a standby, if there is one: no core works meanwhile. */
  commitMs: number
  roundTripMs: number
  /** Over all validators. */
  claimsPerSecond: number
  seconds: number
  mostInStatement: number
  next: () => number
}

export interface ClaimsReport {
  p50Ms: number
  p99Ms: number
  /** Claims in a statement, on average. */
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
          for (const askedMs of batch) latencies.push(events.nowMs - askedMs)
          queue.isSending = false
          send(queue)
        }),
      ),
    )
  }
  const arrive = (): void => {
    const queue = queues[Math.floor(model.next() * queues.length)]
    if (!queue) return
    queue.waiting.push(events.nowMs)
    if (!queue.isSending) send(queue)
    const gapMs = (-Math.log(1 - model.next()) * 1_000) / model.claimsPerSecond
    if (events.nowMs + gapMs < model.seconds * 1_000) events.after(gapMs, arrive)
  }
  arrive()
  events.run()
  return { ...quantiles(latencies), batch: latencies.length / Math.max(1, statements) }
}
