/**
 * Runs similar tasks of an owner in batches, so that one statement serves many requests under load. While a batch runs, the owner's new
 * tasks wait and form the next batch. A task of an owner without a running batch starts at once, with those that arrive at the same time.
 */

import { setImmediate } from 'node:timers/promises'

import { ApiError } from '../http/problem.ts'

/** The maximum number of waiting tasks of one owner. Further tasks are rejected immediately. */
const MAX_WAITING = 200
/** The time after which a waiting task is rejected. */
const MAX_WAIT_MS = 5_000

interface Waiting<Task, Result> {
  task: Task
  sinceMs: number
  resolve: (result: Result) => void
  reject: (error: unknown) => void
}

interface BatchOptions<Task, Result> {
  /**
   * Called after every task of the batch has arrived. Returns the outcomes in the order of the tasks. If it rejects, all tasks are
   * rejected.
   */
  run: (owner: string, tasks: readonly Task[]) => Promise<readonly PromiseSettledResult<Result>[]>
  /** The maximum number of tasks in a batch. */
  maxBatch: number
  /** Called for each task that is rejected because it has waited too long or too many tasks wait. */
  onReject: () => void
}

export class Batches<Task, Result> {
  readonly #options: BatchOptions<Task, Result>
  /** The waiting tasks of each owner with a running batch. */
  readonly #owners = new Map<string, Waiting<Task, Result>[]>()

  constructor(options: BatchOptions<Task, Result>) {
    this.#options = options
  }

  /** Returns the result of the task. Throws UNAVAILABLE when the task waits too long, or too many tasks wait. */
  add(owner: string, task: Task): Promise<Result> {
    return new Promise((resolve, reject) => {
      const added = { task, sinceMs: performance.now(), resolve, reject }
      const waiting = this.#owners.get(owner)
      if (waiting === undefined) void this.#runAll(owner, [added])
      else if (waiting.length < MAX_WAITING) waiting.push(added)
      else this.#rejectLate(added)
    })
  }

  async #runAll(owner: string, waiting: Waiting<Task, Result>[]): Promise<void> {
    this.#owners.set(owner, waiting)
    while (waiting.length > 0) {
      // Requests that arrive in the same iteration of the event loop belong to one batch.
      await setImmediate()
      const oldestMs = performance.now() - MAX_WAIT_MS
      const batch = waiting.splice(0, this.#options.maxBatch)
      for (const late of batch.filter(({ sinceMs }) => sinceMs < oldestMs)) this.#rejectLate(late)
      await this.#runBatch(
        owner,
        batch.filter(({ sinceMs }) => sinceMs >= oldestMs),
      )
    }
    this.#owners.delete(owner)
  }

  async #runBatch(owner: string, batch: readonly Waiting<Task, Result>[]): Promise<void> {
    if (batch.length === 0) return
    try {
      const tasks = batch.map(({ task }) => task)
      const outcomes = await this.#options.run(owner, tasks)
      for (const [i, { resolve, reject }] of batch.entries()) {
        const outcome = outcomes[i]!
        if (outcome.status === 'fulfilled') resolve(outcome.value)
        else reject(outcome.reason)
      }
    } catch (error) {
      for (const { reject } of batch) reject(error)
    }
  }

  #rejectLate({ reject }: Waiting<Task, Result>): void {
    this.#options.onReject()
    const detail = 'Too many requests are waiting. Retry in 1 s.'
    reject(new ApiError('UNAVAILABLE', detail, { headers: { 'retry-after': '1' } }))
  }
}
