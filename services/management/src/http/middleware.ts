/** Defines handlers that run before the endpoint of a request. They use only what Node offers, so that they also run without Express. */

import type { IncomingMessage, ServerResponse } from 'node:http'

/** Calls `next` to continue, or sends the response itself. */
export type Middleware = (request: IncomingMessage, response: ServerResponse, next: () => void) => void

/** Returns a handler that runs the given ones in their order. */
export function inOrder(handlers: readonly Middleware[]): Middleware {
  const [first, ...others] = handlers
  if (first === undefined) return (_request, _response, next) => next()
  const rest = inOrder(others)
  return (request, response, next) => first(request, response, () => rest(request, response, next))
}
