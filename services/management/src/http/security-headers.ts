/** Sets the security headers of helmet. They are equal for all responses, so they are computed once. */

import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

import helmet from 'helmet'

import type { Middleware } from './middleware.ts'

export function securityHeaders(): Middleware {
  const sample = new ServerResponse(new IncomingMessage(new Socket()))
  helmet()(sample.req, sample, () => undefined)
  const headers = Object.entries(sample.getHeaders()).map(([name, value]) => [name, String(value)] as const)
  return (_request, response, next) => {
    for (const [name, value] of headers) response.setHeader(name, value)
    next()
  }
}
