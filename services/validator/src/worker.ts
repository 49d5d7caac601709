/**
 * A worker thread: one HTTP server over the index that the main thread writes, on connections that the main thread accepts.
 * It holds nothing of its own that could be out of date. After an uncaught error it asks to be taken out, closes its
 * connections and ends (with open ones, or dealt another one, it would abort the whole process); another one takes its place.
 */

import { parentPort } from 'node:worker_threads'

import { createClientResolver } from '@keyward/address'
import { openIndex } from '@keyward/engine'
import { collectGarbage } from '@keyward/process/collect-garbage'

import { Deactivation } from './endpoints/deactivate.ts'
import { createRoutes } from './endpoints/routes.ts'
import { Validation } from './endpoints/validate.ts'
import { Authorizer } from './http/authenticator.ts'
import { Server } from './http/server.ts'
import { PublicKeys } from './public-keys/endpoint.ts'
import { KeyCopy } from './public-keys/replica.ts'
import { Control } from './shared/control.ts'
import { Counters } from './shared/counters.ts'
import type { ToMain, WorkerSetup } from './shared/messages.ts'
import { Reverified } from './shared/recheck-throttle.ts'
import { RingWriter } from './usage/ring.ts'
import { WorkerLink } from './workers/main-thread-client.ts'

/** How often a stopping worker looks whether its requests are answered; no sooner, since a connection may be on its way. */
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
  const shared = { reader, control, counters, authorizer: new Authorizer(reader, control, counters) }
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
    publicKeys: new PublicKeys({ ...shared, keys: new KeyCopy(setup.keys, control) }),
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

/** Answers what is in flight, for at most `graceMs`, then closes every connection. */
function stopServer(server: Server, graceMs: number, onClosed: () => void): void {
  const startedMs = performance.now()
  const timer = setInterval(() => {
    const waitedMs = performance.now() - startedMs
    if (server.deadlines.count > 0 && waitedMs < graceMs) return
    clearInterval(timer)
    server.close()
    onClosed()
  }, STOP_TICK_MS)
}

function start(setup: WorkerSetup, port: NonNullable<typeof parentPort>): void {
  let server: Server | null = null
  const link = new WorkerLink(port, (graceMs) => {
    if (server) stopServer(server, graceMs, () => port.close())
    else port.close()
  })
  process.on('uncaughtException', (error) => link.say(errorMessage(error, true)))
  server = createServer(setup, link)
  collectGarbage() // before the first connection
  link.say({ type: 'ready', descriptor: server.descriptor })
}

const port = parentPort
port?.once('message', (setup: WorkerSetup) => start(setup, port))
