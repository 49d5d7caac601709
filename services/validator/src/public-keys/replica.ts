/**
 * A worker's copy of the public keys, as ready bodies. What the main thread has told is read before each answer, so that a
 * worker is never behind it, and an answer waits for nobody.
 */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

import type { Control } from '../shared/control.ts'
import type { KeysMessage } from './publisher.ts'
import type { KeyChange, PublicKey } from './store.ts'

/** Two bodies as JSON; `current` is null for an organization without signing keys. */
export interface KeyBodies {
  current: Uint8Array | null
  all: Uint8Array
  /** When the first of the keys in them goes out of force. */
  untilMs: number
}

const NO_KEYS: KeyBodies = { current: null, all: Buffer.from('{"keys":[]}'), untilMs: Infinity }

export class KeyCopy {
  readonly #port: MessagePort
  readonly #control: Control
  readonly #keys = new Map<string, PublicKey>()
  readonly #organizations = new Map<string, Set<string>>()
  readonly #bodies = new Map<string, KeyBodies>()
  /** Of the last message that was read. */
  #version = Number.NaN

  constructor(port: MessagePort, control: Control) {
    this.#port = port
    this.#control = control
    // Also read as they come: otherwise they would gather where nobody asks for keys.
    port.on('message', (message: KeysMessage) => this.#take(message))
    port.unref()
  }

  /** `organization`: its id in hex. */
  bodies(organization: string, nowMs: number): KeyBodies {
    while (this.#version !== this.#control.keysVersion) {
      const received: { message: KeysMessage } | undefined = receiveMessageOnPort(this.#port)
      if (!received) break
      this.#take(received.message)
    }
    const known = this.#bodies.get(organization)
    if (known && known.untilMs > nowMs) return known
    const ids = this.#organizations.get(organization)
    if (!ids) return NO_KEYS
    const keys = [...ids].flatMap((id) => this.#keys.get(id) ?? [])
    const bodies = makeBodies(keys.filter((key) => key.inForceUntilMs > nowMs))
    this.#bodies.set(organization, bodies)
    return bodies
  }

  #take({ version, changes }: KeysMessage): void {
    for (const change of changes) this.#apply(change)
    this.#version = version
  }

  #apply({ id, key }: KeyChange): void {
    const before = this.#keys.get(id)
    if (before) {
      this.#keys.delete(id)
      this.#bodies.delete(before.organization)
      const ids = this.#organizations.get(before.organization)
      ids?.delete(id)
      if (ids?.size === 0) this.#organizations.delete(before.organization)
    }
    if (key === null) return
    this.#keys.set(id, key)
    this.#bodies.delete(key.organization)
    const ids = this.#organizations.get(key.organization) ?? new Set()
    this.#organizations.set(key.organization, ids.add(id))
  }
}

function makeBodies(keys: readonly PublicKey[]): KeyBodies {
  const newestFirst = [...keys].toSorted((a, b) => b.createdAtMs - a.createdAtMs)
  const current = newestFirst.find((key) => key.retiredAtMs === Infinity)
  const listed = newestFirst.map((key) => {
    const createdAt = new Date(key.createdAtMs).toISOString()
    const retiredAt = key.retiredAtMs === Infinity ? null : new Date(key.retiredAtMs).toISOString()
    return Object.assign(describe(key), { createdAt, retiredAt })
  })
  return {
    current: current ? Buffer.from(JSON.stringify(describe(current))) : null,
    all: Buffer.from(JSON.stringify({ keys: listed })),
    untilMs: Math.min(...keys.map((key) => key.inForceUntilMs)),
  }
}

function describe({ keyId, publicKey }: PublicKey): { keyId: string; algorithm: string; publicKey: string } {
  return { keyId, algorithm: 'Ed25519', publicKey }
}
