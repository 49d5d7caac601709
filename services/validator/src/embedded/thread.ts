/** Runs the thread of an embedded validator: everything except the checks, which the embedding program decides from the shared index. */

import { type MessagePort, parentPort } from 'node:worker_threads'

import { Counters } from '../shared/counters.ts'
import type { MessageToMain } from '../shared/messages.ts'
import { yieldToChecks } from '../shared/priority.ts'
import { startValidator } from '../validator.ts'
import { type CheckThreads, type CheckThreadsParts, workHandler } from '../workers/check-threads.ts'
import type { MessageToProgram, MessageToThread, ThreadSetup } from './messages.ts'

/** The thread of the embedding program. */
class EmbeddingThread implements CheckThreads {
  readonly size = 1
  readonly httpLibrary = null
  readonly #counters = new Counters()
  readonly #ring: SharedArrayBuffer
  readonly #parts: CheckThreadsParts
  readonly #send: (message: MessageToProgram) => void

  constructor(work: MessagePort, parts: CheckThreadsParts, send: (message: MessageToProgram) => void) {
    this.#parts = parts
    this.#send = send
    this.#ring = parts.createRing()
    const handle = workHandler((message) => work.postMessage(message), parts)
    work.on('message', (message: MessageToMain) => {
      if (message.type === 'work' || message.type === 'keyUsed') handle(message)
    })
  }

  totals(): Counters {
    return this.#counters
  }

  start(): Promise<number> {
    const { index, control, recheckThrottle, renewalThrottle, leases } = this.#parts.setup
    const shared = { index, control, recheckThrottle, renewalThrottle, leases }
    this.#send({ type: 'setup', setup: { ...shared, counters: this.#counters.shared, ring: this.#ring } })
    return Promise.resolve(0)
  }

  /** The program sends `close` after its last check, so nothing remains to be finished. */
  stop(): Promise<void> {
    this.#parts.releaseRing(this.#ring)
    return Promise.resolve()
  }
}

async function start({ config, reserve, work }: ThreadSetup, port: MessagePort): Promise<void> {
  const send = (message: MessageToProgram): void => port.postMessage(message)
  const open = (_config: object, parts: CheckThreadsParts): CheckThreads => new EmbeddingThread(work, parts, send)
  const validator = await startValidator(config, open, reserve)
  const close = async (): Promise<void> => {
    await validator.close()
    work.close()
    port.close()
  }
  port.on('message', (message: MessageToThread) => {
    message.type satisfies 'close'
    void close()
  })
  void validator.loaded.then(() => send({ type: 'loaded' }))
  void validator.unusable.then(() => send({ type: 'unusable' }))
  send({ type: 'started', adminPort: validator.adminPort })
}

const port = parentPort
yieldToChecks()
port?.once('message', (setup: ThreadSetup) => void start(setup, port))
