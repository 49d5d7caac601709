/**
 * A worker thread: one HTTP server over the index that the main thread writes. It holds nothing of its own that could be
 * out of date. An uncaught error closes its connections before the thread ends (the native loop would otherwise abort the
 * whole process), and the main thread starts another one.
 */

import { parentPort } from 'node:worker_threads'

import { createClientResolver } from '@keyward/address'
import { openIndex } from '@keyward/engine'

import type { ToMain, WorkerSetup } from './link/messages.ts'
import { WorkerLink } from './link/worker-link.ts'
import { RingWriter } from './recording/ring.ts'
import { Control } from './shared/control.ts'
import { Counters } from './shared/counters.ts'
import { Reverified } from './shared/reverified.ts'
import { Authorizer } from './transport/authorizer.ts'
import { Deactivation } from './transport/deactivate.ts'
import { PublicKeys } from './transport/public-keys.ts'
import { createRoutes } from './transport/routes.ts'
import { Server } from './transport/server.ts'
import { Validation } from './transport/validate.ts'

/** How often a stopping worker looks whether its requests are answered. */
const STOP_TICK_MS = 20

function errorMessage(error: unknown, fatal: boolean): ToMain {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  return { type: 'error', name, message, stack: stack ?? '', fatal }
}

function createServer(setup: WorkerSetup, link: WorkerLink): Server {
  const counters = new Counters(setup.counters)
  const control = new Control(setup.control)
  const reader = openIndex(setup.index)
  const resolver = createClientResolver(setup.resolver)
  const shared = { reader, control, counters, authorizer: new Authorizer(reader) }
  const recorder = new RingWriter(setup.records, () => counters.count('recordDropped'))
  const routes = createRoutes({
    validation: new Validation({
      ...shared,
      resolver,
      recorder,
      claims: link,
      reverified: new Reverified(setup.reverified),
    }),
    deactivation: new Deactivation({ ...shared, releases: link }),
    publicKeys: new PublicKeys({ ...shared, keyRing: link }),
  })
  return new Server({
    routes,
    control,
    counters,
    corsOrigins: setup.corsOrigins,
    forwardedHeaders: resolver.headers,
    onError: (error) => link.say(errorMessage(error, false)),
  })
}

/** Answers what is in flight, for at most `graceMs`, then closes every connection and lets the thread end. */
function stopServer(server: Server, graceMs: number, onClosed: () => void): void {
  server.stopListening()
  const startedMs = performance.now()
  const timer = setInterval(() => {
    const waitedMs = performance.now() - startedMs
    if (server.deadlines.count > 0 && waitedMs < graceMs) return
    clearInterval(timer)
    server.close()
    onClosed()
  }, STOP_TICK_MS)
}

async function start(setup: WorkerSetup, port: NonNullable<typeof parentPort>): Promise<void> {
  const link: WorkerLink = new WorkerLink(port, (graceMs) =>
    stopServer(server, graceMs, () => {
      link.say({ type: 'closed' })
      port.close()
    }),
  )
  const server = createServer(setup, link)
  process.on('uncaughtException', (error) => {
    server.close()
    link.say(errorMessage(error, true))
    port.close()
  })
  await server.listen(setup.host, setup.port)
  link.say({ type: 'listening' })
}

const port = parentPort
port?.once('message', (setup: WorkerSetup) => {
  start(setup, port).catch((error: unknown) => port.postMessage(errorMessage(error, true)))
})
