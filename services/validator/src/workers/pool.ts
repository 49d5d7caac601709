/**
 * Manages the worker threads: starts and stops them, sends them connections and responses, and replaces failed ones. A failed
 * worker closes its connections before it ends, so its clients can retry.
 */

import { Worker } from 'node:worker_threads'

import { type AppDescriptor, HTTP_LIBRARY } from '@keyward/uwebsockets'

import type { ValidatorConfig } from '../config.ts'
import { Counters } from '../shared/counters.ts'
import type { MessageToMain, MessageToWorker, WorkerSetup } from '../shared/messages.ts'
import { Acceptor } from './acceptor.ts'
import { type CheckThreads, type CheckThreadsParts, workHandler } from './check-threads.ts'

type Listening = Pick<ValidatorConfig, 'workers' | 'host' | 'port' | 'socketPath'>

/** The delay before a failed worker is replaced. It limits the rate of restarts when workers fail at their start. */
const RESTART_MS = 200

interface RunningWorker {
  readonly thread: Worker
  readonly counters: Counters
  readonly ring: SharedArrayBuffer
  /** The descriptors of the worker for each acceptor. The list is empty until the worker accepts connections. */
  descriptors: readonly AppDescriptor[]
}

export class WorkerPool implements CheckThreads {
  readonly httpLibrary = HTTP_LIBRARY
  readonly #listening: Listening
  readonly #parts: CheckThreadsParts
  /** Every thread that has not ended, including those that are starting or stopping. */
  readonly #workers = new Set<RunningWorker>()
  /** The sums of the counters of ended workers. */
  readonly #past = new Counters()
  /** Accepts the connections over TCP. */
  readonly #acceptor = new Acceptor()
  /** Accepts the connections of the Unix socket, if there is one. */
  readonly #unixAcceptor = new Acceptor()
  readonly #acceptors = [this.#acceptor, this.#unixAcceptor]
  /** Whether all initial workers are ready. Ended workers are replaced only from then on. */
  #isStarted = false
  #isStopping = false

  constructor(listening: Listening, parts: CheckThreadsParts) {
    this.#listening = listening
    this.#parts = parts
  }

  get size(): number {
    return this.#workers.size
  }

  get workers(): ReadonlySet<RunningWorker> {
    return this.#workers
  }

  /** Returns the sums of the counters of all workers, including workers that have ended. */
  totals(): Counters {
    const totals = new Counters()
    totals.add(this.#past)
    for (const worker of this.#workers) totals.add(worker.counters)
    return totals
  }

  /** Resolves to the port when every worker is ready. Rejects when a worker fails or the port is not available. */
  async start(): Promise<number> {
    const { workers, host, port, socketPath } = this.#listening
    await Promise.all(Array.from({ length: workers }, () => this.#startOne()))
    this.#isStarted = true
    if (socketPath !== null) await this.#unixAcceptor.listenOnSocket(socketPath)
    return await this.#acceptor.listen(host, port)
  }

  /** Stops every worker, which may finish its requests for at most `graceMs`. */
  async stop(graceMs: number): Promise<void> {
    this.#isStopping = true
    for (const acceptor of this.#acceptors) acceptor.stopListening()
    await Promise.all([...this.#workers].map((worker) => this.#stopOne(worker, graceMs)))
    for (const acceptor of this.#acceptors) acceptor.close()
  }

  #startOne(): Promise<void> {
    const counters = new Counters()
    const ring = this.#parts.createRing()
    const thread = new Worker(new URL('../worker.ts', import.meta.url), { name: 'keyward-worker' })
    const worker: RunningWorker = { thread, counters, ring, descriptors: [] }
    this.#workers.add(worker)
    const work = workHandler((message) => send(thread, message), this.#parts)
    const ready = Promise.withResolvers<void>()
    thread.on('message', (message: MessageToMain) => {
      switch (message.type) {
        case 'ready':
          worker.descriptors = message.descriptors
          worker.descriptors.forEach((descriptor, i) => this.#acceptors[i]?.add(descriptor))
          ready.resolve()
          return
        case 'work':
        case 'keyUsed':
          work(message)
          return
        case 'error':
          this.#parts.onError(toError(message), message.fatal)
          if (message.fatal) void this.#stopOne(worker, 0)
          return
        default:
          message satisfies never
      }
    })
    thread.on('error', (error: Error) => this.#parts.onError(error, true))
    thread.on('exit', () => {
      ready.reject(new Error('A worker ended before it was ready.'))
      this.#ended(worker)
    })
    const publicKeys = this.#parts.openPublicKeys()
    const setup: WorkerSetup = { ...this.#parts.setup, counters: counters.shared, ring, publicKeys }
    thread.postMessage(setup, [publicKeys])
    return ready.promise
  }

  /** Removes the worker from the acceptor, then stops the worker. Resolves when the worker's thread has ended. */
  async #stopOne(worker: RunningWorker, graceMs: number): Promise<void> {
    const { thread } = worker
    const ended = new Promise((resolve) => thread.once('exit', resolve))
    this.#removeFromAcceptors(worker)
    send(thread, { type: 'stop', graceMs })
    await ended
  }

  #removeFromAcceptors({ descriptors }: RunningWorker): void {
    descriptors.forEach((descriptor, i) => this.#acceptors[i]?.remove(descriptor))
  }

  #ended(worker: RunningWorker): void {
    this.#removeFromAcceptors(worker)
    this.#workers.delete(worker)
    this.#past.add(worker.counters)
    this.#parts.releaseRing(worker.ring)
    if (this.#isStopping || !this.#isStarted) return
    setTimeout(() => {
      if (!this.#isStopping) this.#startOne().catch(() => undefined) // `onError` has received the error
    }, RESTART_MS)
  }
}

/** Converts the message of a worker to an error object for the log. */
function toError({ name, message, stack }: { name: string; message: string; stack: string }): Error {
  return Object.assign(new Error(message), { name, stack })
}

function send(thread: Worker, message: MessageToWorker): void {
  thread.postMessage(message)
}
