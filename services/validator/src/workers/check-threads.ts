/** The threads that decide checks: those of the HTTP server, or the thread of a program that embeds the validator. */

import type { MessagePort } from 'node:worker_threads'

import type { HTTP_LIBRARY } from '@keyward/uwebsockets'

import type { ValidatorConfig } from '../config.ts'
import type { Counters } from '../shared/counters.ts'
import type { MessageToMain, MessageToWorker, WorkerSetup, WorkRequest, WorkResponse } from '../shared/messages.ts'

export interface CheckThreads {
  /** The number of threads that have not ended. */
  readonly size: number
  /** The library that serves HTTP, or null if the threads serve none. */
  readonly httpLibrary: typeof HTTP_LIBRARY | null
  /** Returns the sums of the counters of all threads, including threads that have ended. */
  totals(): Counters
  /** Resolves to the port of the HTTP server, or to 0 without one, when every thread is ready. */
  start(): Promise<number>
  /** Stops every thread, which may finish its checks for at most `graceMs`. */
  stop(graceMs: number): Promise<void>
}

/** The parts of the validator that the threads use. */
export interface CheckThreadsParts {
  /** The parts of the setup that all threads share. */
  setup: Omit<WorkerSetup, 'counters' | 'ring' | 'publicKeys'>
  /** Returns the ring for a new thread. */
  createRing(): SharedArrayBuffer
  /** Called when the thread of this ring has ended. */
  releaseRing(ring: SharedArrayBuffer): void
  /** Returns the port that delivers the public keys to a new thread. */
  openPublicKeys(): MessagePort
  /** Handles a request, and calls `respond` once, immediately or later. */
  onRequest(request: WorkRequest, respond: (response: WorkResponse) => void): void
  onKeyUsed(row: number, generation: number, atMs: number): void
  onError(error: Error, fatal: boolean): void
}

export type OpenCheckThreads = (config: ValidatorConfig, parts: CheckThreadsParts) => CheckThreads

/** Returns a function that handles the messages about the work of one thread. Responses of one turn of the event loop are one message. */
export function workHandler(
  send: (message: MessageToWorker) => void,
  { onRequest, onKeyUsed }: Pick<CheckThreadsParts, 'onRequest' | 'onKeyUsed'>,
): (message: Extract<MessageToMain, { type: 'work' | 'keyUsed' }>) => void {
  let batch: WorkResponse[] = []
  const respond = (response: WorkResponse): void => {
    if (batch.push(response) > 1) return
    setImmediate(() => {
      const responses = batch
      batch = []
      send({ type: 'responses', responses })
    })
  }
  return (message) => {
    if (message.type === 'keyUsed') onKeyUsed(message.row, message.generation, message.atMs)
    else for (const request of message.requests) onRequest(request, respond)
  }
}
