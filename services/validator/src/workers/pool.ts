/**
 * The worker threads: starts them, deals connections to them, answers what they ask, stops them, and replaces one that
 * failed. A worker's connections are closed by itself before it ends; what its clients see is a broken connection, which they
 * try again.
 */

import { type MessagePort, Worker } from 'node:worker_threads'

import { Counters } from '../shared/counters.ts'
import type { ToMain, ToWorker, WorkAnswer, WorkerSetup, WorkRequest } from '../shared/messages.ts'
import type { AppDescriptor } from '../shared/uwebsockets.ts'
import { Acceptor } from './acceptor.ts'

export interface WorkerPoolOptions {
  count: number
  host: string
  /** 0 lets the system choose. */
  port: number
  /** Everything but the counters, the records and the keys, which are each worker's own. */
  setup: Omit<WorkerSetup, 'counters' | 'records' | 'keys'>
  /** The ring that a new worker records into. */
  createRecords(): SharedArrayBuffer
  /** The worker of this ring has ended. */
  releaseRecords(records: SharedArrayBuffer): void
  /** The port that brings a new worker the public keys. */
  openKeys(): MessagePort
  /** Answers a question of a worker, once, now or later. */
  onRequest(request: WorkRequest, answer: (answer: WorkAnswer) => void): void
  onError(error: Error, fatal: boolean): void
}

/** A worker that ended by a fault is replaced after this, so that a fault at the start does not spin. */
const RESTART_MS = 200

export interface RunningWorker {
  readonly thread: Worker
  readonly counters: Counters
  readonly records: SharedArrayBuffer
  /** Null until it takes connections. */
  descriptor: AppDescriptor | null
}

export class WorkerPool {
  readonly #options: WorkerPoolOptions
  readonly #workers = new Set<RunningWorker>()
  /** What ended workers had counted. */
  readonly #past = new Counters()
  readonly #acceptor = new Acceptor()
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

  /** Resolves with the port when every worker is there; rejects when one is not, or the port cannot be had. */
  async start(): Promise<number> {
    const { count, host, port } = this.#options
    await Promise.all(Array.from({ length: count }, () => this.#startOne()))
    this.#isStarted = true
    return await this.#acceptor.listen(host, port)
  }

  /** Lets every worker answer what is in flight for at most `graceMs`, then close. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    this.#acceptor.stopListening()
    await Promise.all([...this.#workers].map((worker) => this.#stopOne(worker, graceMs)))
    this.#acceptor.close()
  }

  #startOne(): Promise<void> {
    const counters = new Counters()
    const records = this.#options.createRecords()
    const thread = new Worker(new URL('../worker.ts', import.meta.url), { name: 'keyward-worker' })
    const worker: RunningWorker = { thread, counters, records, descriptor: null }
    this.#workers.add(worker)
    const answer = gatherAnswers(thread)
    const ready = new Promise<void>((resolve, reject) => {
      thread.on('message', (message: ToMain) => {
        switch (message.type) {
          case 'ready':
            worker.descriptor = message.descriptor
            this.#acceptor.add(message.descriptor)
            resolve()
            return
          case 'work':
            for (const request of message.requests) this.#options.onRequest(request, answer)
            return
          case 'error':
            this.#options.onError(toError(message), message.fatal)
            if (message.fatal) void this.#stopOne(worker, 0)
            return
          default:
            message satisfies never
        }
      })
      thread.on('error', (error: Error) => {
        this.#options.onError(error, true)
      })
      thread.on('exit', () => reject(new Error('A worker ended before it was ready.')))
    })
    thread.on('exit', () => this.#ended(worker))
    const keys = this.#options.openKeys()
    const setup: WorkerSetup = { ...this.#options.setup, counters: counters.shared, records, keys }
    thread.postMessage(setup, [keys])
    return ready
  }

  /** Deals it nothing more before it is told to close. */
  async #stopOne(worker: RunningWorker, graceMs: number): Promise<void> {
    const { descriptor, thread } = worker
    const ended = new Promise((resolve) => thread.once('exit', resolve))
    if (descriptor !== null) this.#acceptor.remove(descriptor)
    say(thread, { type: 'stop', graceMs })
    await ended
  }

  #ended(worker: RunningWorker): void {
    if (worker.descriptor !== null) this.#acceptor.remove(worker.descriptor)
    this.#workers.delete(worker)
    this.#past.add(worker.counters)
    this.#options.releaseRecords(worker.records)
    if (this.#isStopping || !this.#isStarted) return
    setTimeout(() => {
      if (!this.#isStopping) this.#startOne().catch(() => undefined) // reported by its events
    }, RESTART_MS)
  }
}

/** An error of a worker as an error of this thread, so that the log knows it as one. */
function toError({ name, message, stack }: { name: string; message: string; stack: string }): Error {
  return Object.assign(new Error(message), { name, stack })
}

function say(thread: Worker, message: ToWorker): void {
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
