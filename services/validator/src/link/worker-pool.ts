/**
 * The worker threads: starts them, answers what they ask, stops them, and replaces one that failed. A worker's connections
 * are closed by itself before it ends; what its clients see is a broken connection, which they try again.
 */

import { Worker } from 'node:worker_threads'

import { Counters } from '../shared/counters.ts'
import type { ToMain, ToWorker, WorkAnswer, WorkerSetup, WorkRequest } from './messages.ts'

export interface WorkerPoolOptions {
  count: number
  /** Everything but the port, the counters and the records, which are each worker's own. */
  setup: Omit<WorkerSetup, 'port' | 'counters' | 'records'>
  /** The ring that a new worker records into. */
  createRecords(): SharedArrayBuffer
  /** The worker of this ring has ended. */
  releaseRecords(records: SharedArrayBuffer): void
  /** Answers a question of a worker, once, now or later. */
  onRequest(request: WorkRequest, answer: (answer: WorkAnswer) => void): void
  onError(error: { name: string; message: string; stack: string }, fatal: boolean): void
}

/** A worker that ended by a fault is replaced after this, so that a fault at the start does not spin. */
const RESTART_MS = 200

export interface RunningWorker {
  readonly thread: Worker
  readonly counters: Counters
  readonly records: SharedArrayBuffer
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #workers = new Set<RunningWorker>()
  /** What ended workers had counted. */
  readonly #past = new Counters()
  #port = 0
  #isStarted = false
  #isStopping = false

  constructor(options: WorkerPoolOptions) {
    this.#options = options
  }

  get workers(): ReadonlySet<RunningWorker> {
    return this.#workers
  }

  /** Sums of all workers there are and were. */
  totals(): Counters {
    const totals = new Counters()
    totals.add(this.#past)
    for (const worker of this.#workers) totals.add(worker.counters)
    return totals
  }

  /** Resolves when every worker listens on the port; rejects when one cannot. */
  async start(port: number): Promise<void> {
    this.#port = port
    await Promise.all(Array.from({ length: this.#options.count }, () => this.#startOne()))
    this.#isStarted = true
  }

  /** Lets every worker answer what is in flight for at most `graceMs`, then close. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    const ended = [...this.#workers].map(
      ({ thread }) => new Promise<void>((resolve) => void thread.once('exit', () => resolve())),
    )
    for (const { thread } of this.#workers) say(thread, { type: 'stop', graceMs })
    await Promise.all(ended)
  }

  #startOne(): Promise<void> {
    const port = this.#port
    const counters = new Counters()
    const records = this.#options.createRecords()
    const thread = new Worker(new URL('../worker.ts', import.meta.url), { name: 'keyward-worker' })
    const worker = { thread, counters, records }
    this.#workers.add(worker)
    const answer = gatherAnswers(thread)
    const listening = new Promise<void>((resolve, reject) => {
      thread.on('message', (message: ToMain) => {
        switch (message.type) {
          case 'listening':
            resolve()
            return
          case 'work':
            for (const request of message.requests) this.#options.onRequest(request, answer)
            return
          case 'error':
            if (message.fatal) reject(Object.assign(new Error(message.message), { port }))
            this.#options.onError(message, message.fatal)
            return
          case 'closed':
            return
          default:
            message satisfies never
        }
      })
      thread.on('error', (error: Error) => {
        reject(error)
        this.#options.onError({ name: error.name, message: error.message, stack: error.stack ?? '' }, true)
      })
      thread.on('exit', () => reject(new Error('A worker ended before it listened.')))
    })
    thread.on('exit', () => this.#ended(worker))
    say(thread, { ...this.#options.setup, port, counters: counters.shared, records })
    return listening
  }

  #ended(worker: RunningWorker): void {
    this.#workers.delete(worker)
    this.#past.add(worker.counters)
    this.#options.releaseRecords(worker.records)
    if (this.#isStopping || !this.#isStarted) return
    setTimeout(() => {
      if (!this.#isStopping) this.#startOne().catch(() => undefined) // reported by its events
    }, RESTART_MS)
  }
}

function say(thread: Worker, message: ToWorker | WorkerSetup): void {
  thread.postMessage(message)
}

/** What is answered within one turn of the loop goes out as one message. */
function gatherAnswers(thread: Worker): (answer: WorkAnswer) => void {
  let gathered: WorkAnswer[] = []
  return (answer) => {
    if (gathered.push(answer) > 1) return
    setImmediate(() => {
      const answers = gathered
      gathered = []
      say(thread, { type: 'answers', answers })
    })
  }
}
