/**
 * The worker's end of the link to the main thread: questions out, each answered by a callback. What is asked within one turn
 * of the loop goes out as one message.
 */

import type { MessagePort } from 'node:worker_threads'

import type { ClaimOutcome, ReleaseOutcome, ToMain, ToWorker, WorkAnswer, WorkRequest } from '../shared/messages.ts'

type Waiting =
  | { kind: 'claim'; done: (outcome: ClaimOutcome) => void }
  | { kind: 'release'; done: (outcome: ReleaseOutcome) => void }

export class WorkerLink {
  readonly #port: MessagePort
  readonly #waiting = new Map<number, Waiting>()
  #requests: WorkRequest[] = []
  #ticket = 0

  constructor(port: MessagePort, onStop: (graceMs: number) => void) {
    this.#port = port
    port.on('message', (message: ToWorker) => {
      switch (message.type) {
        case 'answers':
          for (const answer of message.answers) this.#settle(answer)
          return
        case 'stop':
          onStop(message.graceMs)
          return
        default:
          message satisfies never
      }
    })
  }

  /** The arrays are kept until the turn ends: they must not be written again. */
  claim(
    licenseId: Uint8Array,
    machineId: Uint8Array,
    hostname: string | null,
    isRecheck: boolean,
    done: (outcome: ClaimOutcome) => void,
  ): void {
    this.#ask(
      { kind: 'claim', ticket: ++this.#ticket, licenseId, machineId, hostname, isRecheck },
      { kind: 'claim', done },
    )
  }

  release(licenseId: Uint8Array, machineId: Uint8Array, done: (outcome: ReleaseOutcome) => void): void {
    this.#ask({ kind: 'release', ticket: ++this.#ticket, licenseId, machineId }, { kind: 'release', done })
  }

  say(message: ToMain): void {
    this.#port.postMessage(message)
  }

  #ask(request: WorkRequest, waiting: Waiting): void {
    this.#waiting.set(request.ticket, waiting)
    if (this.#requests.push(request) > 1) return
    setImmediate(() => {
      const requests = this.#requests
      this.#requests = []
      this.say({ type: 'work', requests })
    })
  }

  #settle(answer: WorkAnswer): void {
    const waiting = this.#waiting.get(answer.ticket)
    this.#waiting.delete(answer.ticket)
    if (waiting?.kind === 'claim' && answer.kind === 'claim') waiting.done(answer.outcome)
    else if (waiting?.kind === 'release' && answer.kind === 'release') waiting.done(answer.outcome)
  }
}
