import { IncomingMessage, ServerResponse } from 'node:http'

import type { Express } from 'express'

/**
 * Returns the classes of which the HTTP server of the application creates its requests and responses. Express gives every request and
 * response the prototypes `app.request` and `app.response`. Changing the prototype of an object makes later reads of its properties
 * slower, so the objects have these prototypes from the start.
 */
export function messageClasses(app: Express): {
  IncomingMessage: typeof IncomingMessage
  ServerResponse: typeof ServerResponse<IncomingMessage>
} {
  class ExpressRequest extends IncomingMessage {}
  class ExpressResponse extends ServerResponse {}
  Object.setPrototypeOf(ExpressRequest.prototype, app.request)
  Object.setPrototypeOf(ExpressResponse.prototype, app.response)
  Object.defineProperties(app, {
    request: { value: ExpressRequest.prototype },
    response: { value: ExpressResponse.prototype },
  })
  return { IncomingMessage: ExpressRequest, ServerResponse: ExpressResponse }
}
