/**
 * Sends the public keys to the workers. Each worker has a separate port, which first delivers every key and then each change.
 * The version of the last change is stored in shared memory after the messages are sent. Therefore a worker whose replica has
 * another version finds the missing messages in its port.
 */

import { MessageChannel, type MessagePort } from 'node:worker_threads'

import type { Control } from '../shared/control.ts'
import type { PublicKeyChange, PublicKeyStore } from './store.ts'

export interface PublicKeysMessage {
  version: number
  changes: readonly PublicKeyChange[]
}

export class PublicKeyPublisher {
  readonly #store: PublicKeyStore
  readonly #control: Control
  readonly #ports = new Set<MessagePort>()

  constructor(store: PublicKeyStore, control: Control) {
    this.#store = store
    this.#control = control
    store.listen((changes) => this.#publish(changes))
  }

  /** Returns the port for a new worker's replica. The channel closes when the worker's thread ends. */
  open(): MessagePort {
    const { port1, port2 } = new MessageChannel()
    this.#ports.add(port1)
    port1.once('close', () => this.#ports.delete(port1))
    send(port1, { version: this.#control.publicKeysVersion, changes: this.#store.all })
    return port2
  }

  #publish(changes: readonly PublicKeyChange[]): void {
    const version = (this.#control.publicKeysVersion + 1) | 0
    for (const port of this.#ports) send(port, { version, changes })
    this.#control.publicKeysVersion = version
  }
}

function send(port: MessagePort, message: PublicKeysMessage): void {
  port.postMessage(message)
}
