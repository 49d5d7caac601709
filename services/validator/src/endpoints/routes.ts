/** The endpoints of the validator (API document, "Endpoints"). */

import type { Route } from '../http/server.ts'
import type { PublicKeys } from '../public-keys/endpoint.ts'
import type { Deactivation } from './deactivate.ts'
import type { Validation } from './validate.ts'

export function createRoutes(parts: {
  validation: Validation
  deactivation: Deactivation
  publicKeys: PublicKeys
}): Route[] {
  const { validation, deactivation, publicKeys } = parts
  const validate: Route['run'] = (exchange, body) => validation.run(exchange, body)
  return [
    { method: 'POST', path: '/api/v2/license/validate', shape: 'v2', run: validate },
    { method: 'POST', path: '/api/v1/validate', shape: 'v1', run: validate },
    { method: 'POST', path: '/api/v1/activate', shape: 'v1', run: validate },
    {
      method: 'POST',
      path: '/api/v1/deactivate',
      shape: 'v1',
      run: (exchange, body) => deactivation.run(exchange, body),
    },
    { method: 'GET', path: '/api/v1/public-key', shape: 'v1', run: (exchange) => publicKeys.current(exchange) },
    { method: 'GET', path: '/api/v1/public-keys', shape: 'v1', run: (exchange) => publicKeys.all(exchange) },
  ]
}
