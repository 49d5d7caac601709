/**
 * Sends a worker's requests to the main thread and calls back with each response. The requests of one turn of the event loop
 * are sent as one message. The number of requests that wait is bounded, and divided between organizations: while the main
 * thread is busy, a flood of one organization neither fills the memory nor delays the requests of another.
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

/** The most requests of a worker that wait for the main thread; one organization alone may have half of them. */
const MAX_WAITING = 20_000

type Waiting = { organization: number } & WaitingRequest
type WaitingRequest =
  | { kind: 'claim'; done: (decision: ClaimDecision) => void }
  | { kind: 'release'; done: (result: ReleaseResult) => void }
  | { kind: 'renew' }

export class MainThreadClient {
  readonly #port: MessagePort
  /** By request id: the callback of each request without a response. */
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

  /** Claims a slot. Decides nothing, immediately, when too many requests wait. Keeps the arrays until the turn ends, so the caller must not write to them. */
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

  /** Renews a lease, unless too many requests wait. Keeps the arrays until the turn ends, so the caller must not write to them. */
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

  /** Releases a slot. Undecided at once when too many requests wait. Keeps the arrays until the turn ends, so the caller must not write to them. */
  release(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    isKnown: boolean,
    done: (result: ReleaseResult) => void,
  ): void {
    if (!this.#share.take(organization)) return done({ released: null })
    this.#request(
      { kind: 'release', requestId: ++this.#requestId, organization, licenseId, machineId, isKnown },
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
