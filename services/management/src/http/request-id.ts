/** Determines the id of each request, which `x-request-id`, problems and logs contain. */

import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'

import type { Middleware } from './middleware.ts'

/** Returns the caller's `x-request-id` if it has 1 to 128 letters, digits or characters of `_.:+/=-`. Otherwise returns a new id. */
export function requestIdOf(request: IncomingMessage): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && /^[\w.:+/=-]{1,128}$/.test(given) ? given : randomUUID()
}

/** Sets `x-request-id` on every response. */
export function requestIds(): Middleware {
  return (request, response, next) => {
    response.setHeader('x-request-id', requestIdOf(request))
    next()
  }
}
