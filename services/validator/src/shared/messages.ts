/**
 * The messages between a worker and the main thread. Ids and machine ids travel as bytes. A request id, chosen by the
 * worker, ties a response to its request. Requests are collected for one turn of the event loop, because each message costs
 * about 30 us.
 */

import type { MessagePort } from 'node:worker_threads'

import type { OriginResolverOptions } from '@keyward/address'
import type { SharedIndex } from '@keyward/engine'

import type { LeaseKey } from './leases.ts'
import type { AppDescriptor } from './uwebsockets.ts'

export interface ClaimRequest {
  kind: 'claim'
  requestId: number
  /** The caller's row in the index: work is shared fairly between organizations. */
  organization: number
  licenseId: Uint8Array
  /** Empty: the claim only starts the license's term. */
  machineId: Uint8Array
  hostname: string | null
  /** The index says that the license is full, and this only verifies it: it may be delayed to join others. */
  isRecheck: boolean
  /** Where the lease of the machine is stored, if it gets one. */
  lease: LeaseKey
}

/** The lease of a machine has passed its half. The response says that the main thread has received it. */
export interface RenewRequest extends Omit<ClaimRequest, 'kind'> {
  kind: 'renew'
}

export interface ReleaseRequest {
  kind: 'release'
  requestId: number
  /** The caller's row in the index. */
  organization: number
  licenseId: Uint8Array
  machineId: Uint8Array
  /** The index says that the machine holds a slot. */
  isKnown: boolean
}

export type WorkRequest = ClaimRequest | ReleaseRequest | RenewRequest

/** The outcome of a claim; undecided if Postgres did not respond in time. `code` is the engine's number of a code. */
export type ClaimDecision =
  | {
      isDecided: true
      code: number
      used: number
      max: number
      /** Infinity: never. */ expiresAtMs: number
      /** On the monotonic clock: from then on the decision must not be VALID any more. */ leaseEndsMs: number
    }
  | { isDecided: false }

/** Whether a slot was released. Null if Postgres did not respond, or if too many releases wait. */
export interface ReleaseResult {
  released: boolean | null
}

export type WorkResponse =
  | { kind: 'claim'; requestId: number; decision: ClaimDecision }
  | { kind: 'release'; requestId: number; result: ReleaseResult }
  | { kind: 'renew'; requestId: number }

export type MessageToMain =
  /** The worker accepts connections under this descriptor. */
  | { type: 'ready'; descriptor: AppDescriptor }
  | { type: 'work'; requests: WorkRequest[] }
  /** An API key was used: its row and generation in the index, and the time in milliseconds since 1970. */
  | { type: 'keyUsed'; row: number; generation: number; atMs: number }
  /** After a fatal error the worker waits to be removed and stopped. */
  | { type: 'error'; name: string; message: string; stack: string; fatal: boolean }

export type MessageToWorker =
  | { type: 'responses'; responses: WorkResponse[] }
  /** No further connection comes. The worker finishes its requests within `graceMs`, then ends. */
  | { type: 'stop'; graceMs: number }

/** The first message to a worker. */
export interface WorkerSetup {
  index: SharedIndex
  control: SharedArrayBuffer
  counters: SharedArrayBuffer
  recheckThrottle: SharedArrayBuffer
  renewalThrottle: SharedArrayBuffer
  leases: SharedArrayBuffer
  /** Where the worker records its checks. */
  ring: SharedArrayBuffer
  /** Delivers a PublicKeysMessage with every key, then one for each change. */
  publicKeys: MessagePort
  corsOrigins: readonly string[]
  resolver: OriginResolverOptions
}
