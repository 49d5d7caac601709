/**
 * Carries the public keys to the workers: each has a port of its own, on which all keys come first and every change after
 * that. The number of the last change is shared memory and is written behind the messages; so a worker that has not read
 * that far knows it, and finds the rest waiting in its port.
 */

import { MessageChannel, type MessagePort } from 'node:worker_threads'

import type { Control } from '../shared/control.ts'
import type { KeyChange, KeyRing } from './store.ts'

/** On the port that a worker has for the keys alone. */
export interface KeysMessage {
  version: number
  changes: readonly KeyChange[]
}

export class KeyLinks {
  readonly #ring: KeyRing
  readonly #control: Control
  readonly #ports = new Set<MessagePort>()

  constructor(ring: KeyRing, control: Control) {
    this.#ring = ring
    this.#control = control
    ring.follow((changes) => this.#tell(changes))
  }

  /** The end for a new worker. The link ends by itself with the thread that holds it. */
  open(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#ports.add(port1)
    port1.once('close', () => this.#ports.delete(port1))
    send(port1, { version: this.#control.keysVersion, changes: this.#ring.all })
    return port2
  }

  #tell(changes: readonly KeyChange[]): void {
    const version = (this.#control.keysVersion + 1) | 0
    for (const port of this.#ports) send(port, { version, changes })
    this.#control.keysVersion = version
  }
}

function send(port: MessagePort, message: KeysMessage): void {
  port.postMessage(message)
}
