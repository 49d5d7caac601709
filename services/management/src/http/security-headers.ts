/** Sets the security headers of helmet. They are equal for all responses, so they are computed once. */

import { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

import type { RequestHandler } from 'express'
import helmet from 'helmet'

export function securityHeaders(): RequestHandler {
  const sample = new ServerResponse(new IncomingMessage(new Socket()))
  helmet()(sample.req, sample, () => undefined)
  const headers = Object.entries(sample.getHeaders()).map(([name, value]) => [name, String(value)] as const)
  return (_request, response, next) => {
    for (const [name, value] of headers) response.setHeader(name, value)
    next()
  }
}
