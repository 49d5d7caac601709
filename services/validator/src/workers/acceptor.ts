/**
 * Accepts the connections of all workers in this thread and deals them out in turn, so that every worker has an equal share:
 * left to the system (SO_REUSEPORT), the busiest of four had a quarter to a third more than its share. A worker must be taken
 * out before it closes: a connection dealt to a closed one would end the process.
 */

import { createServer } from 'node:net'

import { App, us_listen_socket_close, us_socket_local_port } from 'uWebSockets.js'

import type { AppDescriptor } from '../shared/uwebsockets.ts'

export class Acceptor {
  readonly #app = App()
  readonly #workers = new Set<AppDescriptor>()
  #stopListening: (() => void) | null = null

  constructor() {
    // Reached only while there is no worker at all.
    this.#app.any('/*', (response) => {
      response.close()
    })
  }

  /** Resolves with the port; 0 lets the system choose. Rejects when it cannot be had. */
  async listen(host: string, port: number): Promise<number> {
    if (port !== 0) await assertFree(host, port)
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, (socket) => {
        if (socket === false) return reject(Object.assign(new Error(`Cannot listen on ${host}:${port}.`), { port }))
        this.#stopListening = () => us_listen_socket_close(socket)
        resolve(us_socket_local_port(socket))
      })
    })
  }

  add(worker: AppDescriptor): void {
    this.#workers.add(worker)
    this.#app.addChildAppDescriptor(worker)
  }

  /** Deals nothing more to this worker. */
  remove(worker: AppDescriptor): void {
    if (this.#workers.delete(worker)) this.#app.removeChildAppDescriptor(worker)
  }

  stopListening(): void {
    this.#stopListening?.()
    this.#stopListening = null
  }

  /** When no worker is left. */
  close(): void {
    this.stopListening()
    this.#app.close()
  }
}

/** The native listener shares a port with any other program that shares it, silently; this rejects when there is one. */
function assertFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })
}
