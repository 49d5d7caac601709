/**
 * Stores a worker's replica of the public keys and delegations, and caches the response bodies. The replica reads pending messages before
 * each response. Therefore each response contains the current keys of the main thread and does not wait for a message.
 */

import { type MessagePort, receiveMessageOnPort } from 'node:worker_threads'

import type { Control } from '../shared/control.ts'
import type { PublicKeysMessage } from './publisher.ts'
import type { PublicKey, PublicKeyChange } from './store.ts'

/** The response bodies of both endpoints for one organization, as JSON. */
export interface PublicKeyBodies {
  /** The current key, or null for an organization without a current key. */
  current: Uint8Array | null
  all: Uint8Array
  /** The time at which the first of these keys goes out of force. The bodies are outdated from then on. */
  validUntilMs: number
}

const NO_KEYS: PublicKeyBodies = { current: null, all: Buffer.from('{"keys":[]}'), validUntilMs: Infinity }

export class PublicKeyReplica {
  readonly #port: MessagePort
  readonly #control: Control
  /** The keys by their ids in hexadecimal. */
  readonly #keys = new Map<string, PublicKey>()
  /** The ids of each organization's keys, by the organization's id in hexadecimal. No set is empty. */
  readonly #organizations = new Map<string, Set<string>>()
  /** The bodies by the organization's id in hexadecimal. A change to a key deletes the bodies of its organization. */
  readonly #bodies = new Map<string, PublicKeyBodies>()
  /** The version of the last message that was applied, or NaN before the first one. */
  #version = Number.NaN

  constructor(port: MessagePort, control: Control) {
    this.#port = port
    this.#control = control
    // Messages are also applied as they arrive, so that they do not accumulate in a worker without requests for keys.
    port.on('message', (message: PublicKeysMessage) => this.#receive(message))
    port.unref()
  }

  /** Returns the bodies for an organization. `organization` is the organization's id in hexadecimal. */
  bodies(organization: string, nowMs: number): PublicKeyBodies {
    this.#receivePending()
    const known = this.#bodies.get(organization)
    if (known && known.validUntilMs > nowMs) return known
    const ids = this.#organizations.get(organization)
    if (!ids) return NO_KEYS
    const keys = [...ids].flatMap((id) => this.#keys.get(id) ?? [])
    const bodies = createBodies(keys.filter((key) => key.inForceUntilMs > nowMs))
    this.#bodies.set(organization, bodies)
    return bodies
  }

  /** Returns the text of the delegation under the organization's key `keyId`, or null without one that is valid now. */
  delegation(organization: string, keyId: string, nowMs: number): string | null {
    this.#receivePending()
    for (const id of this.#organizations.get(organization) ?? []) {
      const key = this.#keys.get(id)
      if (key?.keyId !== keyId || key.delegation === null) continue
      const { signed, fromMs, untilMs } = key.delegation
      return fromMs <= nowMs && nowMs < untilMs ? signed : null
    }
    return null
  }

  #receivePending(): void {
    while (this.#version !== this.#control.publicKeysVersion) {
      const received: { message: PublicKeysMessage } | undefined = receiveMessageOnPort(this.#port)
      if (!received) break
      this.#receive(received.message)
    }
  }

  #receive({ version, changes }: PublicKeysMessage): void {
    for (const change of changes) this.#apply(change)
    this.#version = version
  }

  #apply({ id, key }: PublicKeyChange): void {
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

function createBodies(keys: readonly PublicKey[]): PublicKeyBodies {
  const newestFirst = [...keys].toSorted((a, b) => b.createdAtMs - a.createdAtMs)
  const current = newestFirst.find((key) => key.retiredAtMs === Infinity && !key.isPrepared)
  const listed = newestFirst.map((key) => {
    const createdAt = new Date(key.createdAtMs).toISOString()
    const retiredAt = key.retiredAtMs === Infinity ? null : new Date(key.retiredAtMs).toISOString()
    return Object.assign(describe(key), { createdAt, retiredAt })
  })
  return {
    current: current ? Buffer.from(JSON.stringify(describe(current))) : null,
    all: Buffer.from(JSON.stringify({ keys: listed })),
    validUntilMs: Math.min(...keys.map((key) => key.inForceUntilMs)),
  }
}

function describe({ keyId, publicKey }: PublicKey): { keyId: string; algorithm: string; publicKey: string } {
  return { keyId, algorithm: 'Ed25519', publicKey }
}
