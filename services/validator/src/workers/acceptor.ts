/**
 * Accepts connections in the main thread and passes them to the workers in turn, so that every worker has an equal share. With
 * SO_REUSEPORT, the busiest of four workers had a quarter to a third more than its share. A worker must be removed before it
 * closes, because a connection that is passed to a closed worker aborts the process.
 */

import { chmodSync, lstatSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'

import { App, type AppDescriptor, closeListener, type Listener, portOf } from '@keyward/uwebsockets'

export class Acceptor {
  readonly #app = App()
  /** The workers that receive connections. */
  readonly #workers = new Set<AppDescriptor>()
  #stopListening: (() => void) | null = null

  constructor() {
    // The route is reached only while there is no worker.
    this.#app.any('/*', (response) => {
      response.close()
    })
  }

  /** Resolves to the port. With port 0, the system chooses a free port. Rejects when the address or port is not available. */
  async listen(host: string, port: number): Promise<number> {
    if (port !== 0) await assertFree(host, port)
    return new Promise((resolve, reject) => {
      this.#app.listen(host, port, (socket) => {
        if (socket === false) return reject(Object.assign(new Error(`Cannot listen on ${host}:${port}.`), { port }))
        this.#stopListening = () => closeListener(socket)
        resolve(portOf(socket))
      })
    })
  }

  /**
   * Listens on a Unix socket that the user and the group of this process may use. Rejects when a program listens on the path, or when the
   * path is not a socket. Replaces the socket of a program that has ended.
   */
  async listenOnSocket(path: string): Promise<void> {
    if (await isInUse(path)) throw new Error(`Another program listens on ${path}.`)
    if (lstatSync(path, { throwIfNoEntry: false })?.isSocket() === false)
      throw new Error(`${path} exists and is not a socket.`)
    rmSync(path, { force: true })
    await new Promise<void>((resolve, reject) => {
      const onListen = (socket: Listener | false): void => {
        if (socket === false) return reject(new Error(`Cannot listen on ${path}.`))
        this.#stopListening = () => {
          closeListener(socket)
          rmSync(path, { force: true })
        }
        resolve()
      }
      this.#app.listen_unix(onListen, path)
    })
    chmodSync(path, 0o660)
  }

  add(worker: AppDescriptor): void {
    this.#workers.add(worker)
    this.#app.addChildAppDescriptor(worker)
  }

  /** Removes a worker, which then receives no further connections. */
  remove(worker: AppDescriptor): void {
    if (this.#workers.delete(worker)) this.#app.removeChildAppDescriptor(worker)
  }

  stopListening(): void {
    this.#stopListening?.()
    this.#stopListening = null
  }

  /** Closes the listener. Call this method when all workers have ended. */
  close(): void {
    this.stopListening()
    this.#app.close()
  }
}

function isInUse(path: string): Promise<boolean> {
  return new Promise((resolve) => {
    const probe = connect(path, () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
}

/** Rejects when the port is in use. The native listener would silently share the port with a program that allows sharing. */
function assertFree(host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', reject)
    probe.listen({ host, port, exclusive: true }, () => probe.close(() => resolve()))
  })
}
