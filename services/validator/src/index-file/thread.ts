/** Runs the thread that writes one index file, and receives its messages. */

import { Worker } from 'node:worker_threads'

import type { FileWriter, WriteRequest, WriterMessage } from './messages.ts'

export class WriterThread implements FileWriter {
  readonly #thread = new Worker(new URL('./writer-thread.ts', import.meta.url), { name: 'keyward-index-file' })
  readonly #received: WriterMessage[] = []
  #error: Error | null = null
  /** Ends the wait for a message. */
  #wake: () => void = () => undefined

  constructor() {
    this.#thread.on('message', (message: WriterMessage) => {
      this.#received.push(message)
      this.#wake()
    })
    this.#thread.on('error', (error) => this.#fail(error instanceof Error ? error : new Error(String(error))))
    this.#thread.on('exit', () => this.#fail(new Error('The thread that writes the index file has ended.')))
  }

  async ready(): Promise<void> {
    await this.#next('ready')
  }

  async copy(request: WriteRequest): Promise<void> {
    this.#thread.postMessage(request)
    await this.#next('copied')
  }

  async written(): Promise<number> {
    const message = await this.#next('written')
    return message.type === 'written' ? message.bytes : 0
  }

  async close(): Promise<void> {
    await this.#thread.terminate()
  }

  #fail(error: Error): void {
    this.#error ??= error
    this.#wake()
  }

  /** Resolves to the next message, which must be of this type. Rejects when the thread fails or ends. */
  async #next(type: WriterMessage['type']): Promise<WriterMessage> {
    while (this.#received.length === 0 && this.#error === null) {
      const { promise, resolve } = Promise.withResolvers<void>()
      this.#wake = resolve
      await promise
    }
    const message = this.#received.shift()
    if (message === undefined) throw this.#error ?? new Error('The thread that writes the index file has ended.')
    if (message.type === 'failed') throw new Error(message.message)
    if (message.type !== type) throw new Error(`The thread that writes the index file sent ${message.type}.`)
    return message
  }
}
