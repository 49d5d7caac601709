/** Defines the routes of the validator's endpoints (docs/api.md#validation-api). */

import type { Route } from '../http/server.ts'
import type { PublicKeysEndpoint } from '../public-keys/endpoint.ts'
import type { Deactivation } from './deactivate.ts'
import type { Validation } from './validate.ts'

/** The paths of the endpoints. A test compares them with the configurations of the balancers. */
export const PATHS = {
  validateV2: '/api/v2/license/validate',
  validateV1: '/api/v1/validate',
  activate: '/api/v1/activate',
  deactivate: '/api/v1/deactivate',
  publicKey: '/api/v1/public-key',
  publicKeys: '/api/v1/public-keys',
} as const

export function createRoutes(parts: {
  validation: Validation
  deactivation: Deactivation
  publicKeys: PublicKeysEndpoint
}): Route[] {
  const { validation, deactivation, publicKeys } = parts
  const validateV1: Route['run'] = (exchange, body) => validation.run(exchange, body, 'validateV1')
  const validateV2: Route['run'] = (exchange, body) => validation.run(exchange, body, 'validateV2')
  const deactivate: Route['run'] = (exchange, body) => deactivation.run(exchange, body)
  return [
    { method: 'POST', path: PATHS.validateV2, shape: 'v2', run: validateV2 },
    { method: 'POST', path: PATHS.validateV1, shape: 'v1', run: validateV1 },
    { method: 'POST', path: PATHS.activate, shape: 'v1', run: validateV1 },
    { method: 'POST', path: PATHS.deactivate, shape: 'v1', run: deactivate },
    { method: 'GET', path: PATHS.publicKey, shape: 'v1', run: (exchange) => publicKeys.current(exchange) },
    { method: 'GET', path: PATHS.publicKeys, shape: 'v1', run: (exchange) => publicKeys.all(exchange) },
  ]
}
