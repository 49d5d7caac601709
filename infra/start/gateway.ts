/**
 * A reverse proxy that serves validator and management at one base address on this machine, as the balancer does in
 * production. It overwrites `x-forwarded-for` with the address of its peer. It writes no log.
 */

import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

import { listenOn } from '../shared/ports.ts'
import { Forwarder } from './forwarder.ts'
import { respondToInvalidHttp, sendUnavailable } from './gateway-errors.ts'

/** The paths that the validator serves. Management serves all others. */
export const VALIDATION_PATHS: ReadonlySet<string> = new Set([
  '/api/v2/license/validate',
  '/api/v2/license/validate/batch',
  '/api/v2/authorize',
  '/api/v1/validate',
  '/api/v1/activate',
  '/api/v1/deactivate',
  '/api/v1/public-key',
  '/api/v1/public-keys',
])

/** The idle timeout of callers' connections. It is longer than the idle timeout of common HTTP clients. */
const CLIENT_IDLE_MS = 65_000

/** The time for which a stopping gateway still accepts requests. Meanwhile, it closes each connection after the next response. */
const DRAIN_MS = 300

/** The maximum size of a body for the validator. A batch has a separate maximum. */
const MAX_BODY_BYTES = 16 * 1024
const BATCH_PATH = '/api/v2/license/validate/batch'
const MAX_BATCH_BODY_BYTES = 128 * 1024

export interface Gateway {
  port: number
  close: () => Promise<void>
}

export interface Targets {
  validator: () => string
  management: () => string
}

/** Starts the gateway. `targets` returns the base addresses for each request. Rejects if the port is taken. */
export async function startGateway(port: number, targets: Targets, host?: string): Promise<Gateway> {
  const forwarder = new Forwarder()
  let isStopping = false
  const server = createServer({ keepAliveTimeout: CLIENT_IDLE_MS }, (request, response) => {
    if (isStopping) request.headers.connection = 'close' // The response gets the same header.
    response.setHeader('via', '1.1 keyward-development-gateway') // `npm run bench` warns about this target.
    request.headers['x-forwarded-for'] = request.socket.remoteAddress ?? ''
    request.url = originForm(request.url ?? '/')
    const path = request.url.split('?', 1)[0] ?? '/'
    const forwarded = VALIDATION_PATHS.has(path)
      ? forwarder.toValidator(request, response, targets.validator(), mostBytesOf(path))
      : forwarder.toManagement(request, response, targets.management())
    forwarded.catch(() => sendUnavailable(response))
  })
  respondToInvalidHttp(server)
  return {
    port: await listenOn(server, port, host),
    close: async () => {
      isStopping = true
      await sleep(DRAIN_MS)
      await new Promise<void>((resolve) => {
        server.close(() => resolve())
        server.closeIdleConnections()
        setTimeout(() => server.closeAllConnections(), 3_000).unref()
      })
      forwarder.close()
    },
  }
}

/** Returns the path and query of a request target, which may be an absolute URL. */
function originForm(url: string): string {
  const rest = url.replace(/^https?:\/\/[^/?]*/i, '')
  return rest.startsWith('?') || rest === '' ? `/${rest}` : rest
}

function mostBytesOf(path: string): number {
  return path === BATCH_PATH ? MAX_BATCH_BODY_BYTES : MAX_BODY_BYTES
}
