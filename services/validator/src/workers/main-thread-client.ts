/**
 * Sends a worker's requests to the main thread and calls back with each response. The requests of one turn of the event loop
 * are sent as one message.
 */

import type { MessagePort } from 'node:worker_threads'

import type {
  ClaimDecision,
  MessageToMain,
  MessageToWorker,
  ReleaseResult,
  WorkRequest,
  WorkResponse,
} from '../shared/messages.ts'

type Waiting =
  | { kind: 'claim'; done: (decision: ClaimDecision) => void }
  | { kind: 'release'; done: (result: ReleaseResult) => void }

export class MainThreadClient {
  readonly #port: MessagePort
  /** By request id: the callback of each request without a response. */
  readonly #waiting = new Map<number, Waiting>()
  /** The requests of this turn, which are not sent yet. */
  #requests: WorkRequest[] = []
  /** The id of the last request. */
  #requestId = 0

  constructor(port: MessagePort, onStop: (graceMs: number) => void) {
    this.#port = port
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

  /** Claims a slot. Keeps the arrays until the turn ends, so the caller must not write to them. */
  claim(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    isRecheck: boolean,
    done: (decision: ClaimDecision) => void,
  ): void {
    this.#request(
      { kind: 'claim', requestId: ++this.#requestId, organization, licenseId, machineId, hostname, isRecheck },
      { kind: 'claim', done },
    )
  }

  /** Releases a slot. Keeps the arrays until the turn ends, so the caller must not write to them. */
  release(
    organization: number,
    licenseId: Uint8Array,
    machineId: Uint8Array,
    isKnown: boolean,
    done: (result: ReleaseResult) => void,
  ): void {
    this.#request(
      { kind: 'release', requestId: ++this.#requestId, organization, licenseId, machineId, isKnown },
      { kind: 'release', done },
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
    this.#waiting.delete(response.requestId)
    if (waiting?.kind === 'claim' && response.kind === 'claim') waiting.done(response.decision)
    else if (waiting?.kind === 'release' && response.kind === 'release') waiting.done(response.result)
  }
}
