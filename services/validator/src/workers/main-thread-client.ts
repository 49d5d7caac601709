/**
 * Sends a worker's requests to the main thread and calls back with each response. The requests of one turn of the event loop
 * are sent as one message. The number of waiting requests is bounded and divided fairly between organizations, so a flood of
 * requests from one organization leaves capacity for the others.
 */

import type { MessagePort } from 'node:worker_threads'

import { FairShare } from '../shared/fair-share.ts'
import type { LeaseKey } from '../shared/leases.ts'
import type {
  ClaimDecision,
  MessageToMain,
  MessageToWorker,
  ReleaseResult,
  WorkRequest,
  WorkResponse,
} from '../shared/messages.ts'

/**
 * The maximum number of a worker's requests that wait for the main thread. One organization alone may use half of this number.
 */
const MAX_WAITING = 20_000

type Waiting = { organization: number } & WaitingRequest
type WaitingRequest =
  | { kind: 'claim'; done: (decision: ClaimDecision) => void }
  | { kind: 'release'; done: (result: ReleaseResult) => void }
  | { kind: 'renew' }

export class MainThreadClient {
  readonly #port: MessagePort
  /** The callbacks of the requests without a response, by request id. */
  readonly #waiting = new Map<number, Waiting>()
  /** The requests of this turn, which are not sent yet. */
  #requests: WorkRequest[] = []
  readonly #share: FairShare
  /** The id of the last request. */
  #requestId = 0

  constructor(port: MessagePort, onStop: (graceMs: number) => void, maxWaiting = MAX_WAITING) {
    this.#port = port
    this.#share = new FairShare(maxWaiting)
    port.on('message', (message: MessageToWorker) => {
      switch (message.type) {
        case 'responses':
          for (const response of message.responses) this.#settle(response)
          return
        case 'stop':
          onStop(message.graceMs)
          return
        default:
          message satisfies never
      }
    })
  }

  /**
   * Claims a slot. The claim ends undecided at once when too many requests wait. The caller must not write to the arrays before
   * the turn of the event loop has ended.
   */
  claim(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    isRecheck: boolean,
    lease: LeaseKey,
    done: (decision: ClaimDecision) => void,
  ): void {
    if (!this.#share.take(organization)) return done({ isDecided: false })
    this.#request(
      { kind: 'claim', requestId: ++this.#requestId, organization, licenseId, machineId, hostname, isRecheck, lease },
      { kind: 'claim', organization, done },
    )
  }

  /**
   * Renews a lease, unless too many requests wait. The caller must not write to the arrays before the turn of the event loop has
   * ended.
   */
  renew(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    lease: LeaseKey,
  ): void {
    if (!this.#share.take(organization)) return
    const request = {
      requestId: ++this.#requestId,
      organization,
      licenseId,
      machineId,
      hostname,
      isRecheck: false,
      lease,
    }
    this.#request({ kind: 'renew', ...request }, { kind: 'renew', organization })
  }

  /**
   * Releases a slot. The release ends undecided at once when too many requests wait. The caller must not write to the arrays
   * before the turn of the event loop has ended.
   */
  release(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    ref: string | null,
    isKnown: boolean,
    done: (result: ReleaseResult) => void,
  ): void {
    if (!this.#share.take(organization)) return done({ outcome: null })
    this.#request(
      { kind: 'release', requestId: ++this.#requestId, organization, licenseId, machineId, ref, isKnown },
      { kind: 'release', organization, done },
    )
  }

  send(message: MessageToMain): void {
    this.#port.postMessage(message)
  }

  #request(request: WorkRequest, waiting: Waiting): void {
    this.#waiting.set(request.requestId, waiting)
    if (this.#requests.push(request) > 1) return
    setImmediate(() => {
      const requests = this.#requests
      this.#requests = []
      this.send({ type: 'work', requests })
    })
  }

  #settle(response: WorkResponse): void {
    const waiting = this.#waiting.get(response.requestId)
    if (!waiting) return
    this.#waiting.delete(response.requestId)
    this.#share.release(waiting.organization)
    if (waiting.kind === 'claim' && response.kind === 'claim') waiting.done(response.decision)
    else if (waiting.kind === 'release' && response.kind === 'release') waiting.done(response.result)
  }
}
