/**
 * What a worker and the main thread say to each other. Ids and machine ids travel as bytes; a ticket, chosen by the worker,
 * ties an answer to its question. Requests gather for one turn of the loop, because each message costs some 30 us.
 */

import type { MessagePort } from 'node:worker_threads'

import type { ClientResolverOptions } from '@keyward/address'
import type { SharedIndex } from '@keyward/engine'

import type { AppDescriptor } from './uwebsockets.ts'

export interface ClaimRequest {
  kind: 'claim'
  ticket: number
  licenseId: Uint8Array
  machineId: Uint8Array
  hostname: string | null
  /** Memory says that the license is full: this only asks whether it still is, and may wait for others that ask. */
  isRecheck: boolean
}

export interface ReleaseRequest {
  kind: 'release'
  ticket: number
  licenseId: Uint8Array
  machineId: Uint8Array
}

export type WorkRequest = ClaimRequest | ReleaseRequest

/** How a claim ended. `code` is a code of the engine by its number. */
export type ClaimOutcome = { answered: true; code: number; used: number; max: number } | { answered: false }

/** `released` is null when Postgres could not be asked. */
export interface ReleaseOutcome {
  released: boolean | null
}

export type WorkAnswer =
  | { kind: 'claim'; ticket: number; outcome: ClaimOutcome }
  | { kind: 'release'; ticket: number; outcome: ReleaseOutcome }

export type ToMain =
  /** The worker takes connections under this name. */
  | { type: 'ready'; descriptor: AppDescriptor }
  | { type: 'work'; requests: WorkRequest[] }
  /** Fatal: the worker waits to be taken out and stopped. */
  | { type: 'error'; name: string; message: string; stack: string; fatal: boolean }

export type ToWorker =
  | { type: 'answers'; answers: WorkAnswer[] }
  /** No new connection comes. What is in flight is answered, then the worker ends. */
  | { type: 'stop'; graceMs: number }

/** What a worker is started with. */
export interface WorkerSetup {
  index: SharedIndex
  control: SharedArrayBuffer
  counters: SharedArrayBuffer
  reverified: SharedArrayBuffer
  records: SharedArrayBuffer
  /** Brings a KeysMessage with all keys, then one for each change. */
  keys: MessagePort
  corsOrigins: readonly string[]
  resolver: ClientResolverOptions
}
