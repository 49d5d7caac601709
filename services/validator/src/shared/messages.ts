/**
 * Defines the messages between a worker and the main thread. Ids and machine ids are sent as bytes. The worker chooses a
 * request id, which the response repeats. Requests are collected for one turn of the event loop, because each message costs
 * about 30 us.
 */

import type { KeyObject } from 'node:crypto'
import type { MessagePort } from 'node:worker_threads'

import type { OriginResolverOptions } from '@keyward/address'
import type { ReleaseOutcome } from '@keyward/database'
import type { SharedIndex } from '@keyward/engine'
import type { AppDescriptor } from '@keyward/uwebsockets'

import type { LeaseKey } from './leases.ts'

interface ClaimRequest {
  kind: 'claim'
  requestId: number
  /** The row of the caller's organization in the index. Work is divided fairly between organizations. */
  organization: number
  licenseId: Uint8Array
  /** The machine id. If it is empty, the claim only starts the license's term. */
  machineId: Uint8Array
  hostname: string | null
  /**
   * Whether the claim is a recheck of a license that is full in the index. A recheck may be delayed and combined with others.
   */
  isRecheck: boolean
  /** The key under which a lease of the machine is stored. */
  lease: LeaseKey
}

/**
 * Requests the renewal of a lease that is in its second half. The response confirms that the main thread has received the
 * request.
 */
interface RenewRequest extends Omit<ClaimRequest, 'kind'> {
  kind: 'renew'
}

interface ReleaseRequest {
  kind: 'release'
  requestId: number
  /** The row of the caller's organization in the index. */
  organization: number
  licenseId: Uint8Array
  /** The machine id, or empty if `ref` names the machine. */
  machineId: Uint8Array
  ref: string | null
  /** Whether the machine holds a slot according to the index. */
  isKnown: boolean
}

export type WorkRequest = ClaimRequest | ReleaseRequest | RenewRequest

/**
 * The outcome of a claim, which is undecided if Postgres did not respond in time. `code` is the engine's number of the code.
 */
export type ClaimDecision =
  | {
      isDecided: true
      code: number
      used: number
      max: number
      /** The expiry of the license. It is Infinity when the license never expires. */
      expiresAtMs: number
      /** The end of the lease on the monotonic clock. A decision that arrives later must not be used. */
      leaseEndsMs: number
    }
  | { isDecided: false }

/** The outcome of a release. It is null if Postgres did not respond or too many releases wait. */
export interface ReleaseResult {
  outcome: ReleaseOutcome | null
}

export type WorkResponse =
  | { kind: 'claim'; requestId: number; decision: ClaimDecision }
  | { kind: 'release'; requestId: number; result: ReleaseResult }
  | { kind: 'renew'; requestId: number }

export type MessageToMain =
  /** The worker accepts connections under these descriptors: of TCP, and of the Unix socket if there is one. */
  | { type: 'ready'; descriptors: readonly AppDescriptor[] }
  | { type: 'work'; requests: WorkRequest[] }
  /** The use of an API key: the row and generation of the key in the index, and the time in milliseconds since 1970. */
  | { type: 'keyUsed'; row: number; generation: number; atMs: number }
  /** The worker reports an error. After a fatal error, the worker waits to be removed and stopped. */
  | { type: 'error'; name: string; message: string; stack: string; fatal: boolean }

export type MessageToWorker =
  | { type: 'responses'; responses: WorkResponse[] }
  /** The worker receives no further connections, finishes its requests within `graceMs`, and then ends. */
  | { type: 'stop'; graceMs: number }

/** The first message to a worker, with its shared memory and settings. */
export interface WorkerSetup {
  index: SharedIndex
  control: SharedArrayBuffer
  counters: SharedArrayBuffer
  recheckThrottle: SharedArrayBuffer
  renewalThrottle: SharedArrayBuffer
  leases: SharedArrayBuffer
  /** The ring in which the worker records its checks. */
  ring: SharedArrayBuffer
  /** The port that delivers a PublicKeysMessage with every key, and then a message for each later change. */
  publicKeys: MessagePort
  /** The private key that signs responses. */
  answerKey: KeyObject
  corsOrigins: readonly string[]
  resolver: OriginResolverOptions
}
