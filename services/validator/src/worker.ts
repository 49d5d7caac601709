/**
 * Runs a worker thread: an HTTP server over the shared index, on connections that the main thread accepts. After an uncaught
 * error the worker requests its removal, closes its connections and ends. The main thread then starts another worker. The
 * process would abort if a worker ended with open connections or received another connection afterwards.
 */

import { parentPort } from 'node:worker_threads'

import { createOriginResolver } from '@keyward/address'
import { openIndex } from '@keyward/engine'
import { collectGarbage } from '@keyward/runtime/collect-garbage'

import { AnswerSigner } from './answers/signer.ts'
import { BatchValidation } from './endpoints/batch.ts'
import { Checks } from './endpoints/checks.ts'
import { Deactivation } from './endpoints/deactivate.ts'
import { createHeaderRoutes, createRoutes } from './endpoints/routes.ts'
import { Validation } from './endpoints/validate.ts'
import { Authenticator } from './http/authenticator.ts'
import { LargeBodies } from './http/large-bodies.ts'
import { Server, type ServerOptions } from './http/server.ts'
import { PublicKeysEndpoint } from './public-keys/endpoint.ts'
import { PublicKeyReplica } from './public-keys/replica.ts'
import { Control } from './shared/control.ts'
import { Counters } from './shared/counters.ts'
import { Leases } from './shared/leases.ts'
import type { MessageToMain, WorkerSetup } from './shared/messages.ts'
import { Throttle } from './shared/throttle.ts'
import { RingWriter } from './usage/ring.ts'
import { MainThreadClient } from './workers/main-thread-client.ts'

/** The interval at which a stopping worker counts its open requests. A connection may still arrive before the first count. */
const STOP_TICK_MS = 20

function errorMessage(error: unknown, fatal: boolean): MessageToMain {
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error))
  return { type: 'error', name, message, stack: stack ?? '', fatal }
}

/** Returns a server for TCP, and with a Unix socket one for its connections. They share all other parts. */
function createServers(setup: WorkerSetup, client: MainThreadClient): Server[] {
  const counters = new Counters(setup.counters)
  const control = new Control(setup.control)
  const reader = openIndex(setup.index)
  const resolver = createOriginResolver(setup.resolver)
  const authenticator = new Authenticator(reader, control, counters, (row, generation, atMs) =>
    client.send({ type: 'keyUsed', row, generation, atMs }),
  )
  const common = { reader, control, counters, authenticator }
  const checks = new Checks({
    reader,
    control,
    counters,
    usage: new RingWriter(setup.ring, () => counters.count('recordDropped')),
    claims: client,
    recheckThrottle: new Throttle(setup.recheckThrottle),
    renewalThrottle: new Throttle(setup.renewalThrottle),
    leases: new Leases(setup.leases),
  })
  const replica = new PublicKeyReplica(setup.publicKeys, control)
  const signer = new AnswerSigner({ reader, counters, replica, key: setup.answerKey })
  const validation = new Validation({ ...common, resolver, checks, signer })
  const routes = createRoutes({
    validation,
    batch: new BatchValidation({ ...common, resolver, checks, signer }),
    largeBodies: new LargeBodies(reader),
    deactivation: new Deactivation({ ...common, releases: client, signer }),
    publicKeys: new PublicKeysEndpoint({ ...common, replica }),
  })
  const options: ServerOptions = {
    routes,
    headerRoutes: createHeaderRoutes({ validation }),
    control,
    counters,
    corsOrigins: setup.corsOrigins,
    forwardedHeaders: resolver.headers,
    isOnUnixSocket: false,
    onError: (error) => client.send(errorMessage(error, false)),
  }
  const servers = [new Server(options)]
  if (setup.resolver.hasUnixSocket === true) servers.push(new Server({ ...options, isOnUnixSocket: true }))
  return servers
}

/** Waits at most `graceMs` for the open requests, then closes every connection. */
function stopServers(servers: readonly Server[], graceMs: number, onClosed: () => void): void {
  const startedMs = performance.now()
  const timer = setInterval(() => {
    const waitedMs = performance.now() - startedMs
    if (servers.some(({ deadlines }) => deadlines.count > 0) && waitedMs < graceMs) return
    clearInterval(timer)
    for (const server of servers) server.close()
    onClosed()
  }, STOP_TICK_MS)
}

function start(setup: WorkerSetup, port: NonNullable<typeof parentPort>): void {
  let servers: readonly Server[] = []
  const client = new MainThreadClient(port, (graceMs) => {
    if (servers.length > 0) stopServers(servers, graceMs, () => port.close())
    else port.close()
  })
  process.on('uncaughtException', (error) => client.send(errorMessage(error, true)))
  servers = createServers(setup, client)
  collectGarbage() // before the first connection
  client.send({ type: 'ready', descriptors: servers.map(({ descriptor }) => descriptor) })
}

const port = parentPort
port?.once('message', (setup: WorkerSetup) => start(setup, port))
