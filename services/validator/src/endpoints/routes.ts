/** Defines the routes of the validator's endpoints (docs/api.md#validation-api). */

import { MAX_BATCH_BODY_BYTES } from '@keyward/contract/validation'

import { MAX_BODY_BYTES } from '../http/exchange.ts'
import type { LargeBodies } from '../http/large-bodies.ts'
import type { HeaderRoute, Route } from '../http/server.ts'
import type { PublicKeysEndpoint } from '../public-keys/endpoint.ts'
import type { BatchValidation } from './batch.ts'
import type { Deactivation } from './deactivate.ts'
import type { Validation } from './validate.ts'

/** The paths of the endpoints. A test compares them with the configurations of the balancers. */
export const PATHS = {
  validateV2: '/api/v2/license/validate',
  validateBatch: '/api/v2/license/validate/batch',
  authorize: '/api/v2/authorize',
  validateV1: '/api/v1/validate',
  activate: '/api/v1/activate',
  deactivate: '/api/v1/deactivate',
  publicKey: '/api/v1/public-key',
  publicKeys: '/api/v1/public-keys',
} as const

export function createHeaderRoutes({ validation }: { validation: Validation }): HeaderRoute[] {
  return [
    {
      path: PATHS.authorize,
      shape: 'gateway',
      read(request) {
        const licenseKey = request.getHeader('x-keyward-license')
        const machineId = request.getHeader('x-keyward-machine')
        return (exchange) => validation.authorize(exchange, licenseKey, machineId)
      },
    },
  ]
}

export function createRoutes(parts: {
  validation: Validation
  batch: BatchValidation
  deactivation: Deactivation
  publicKeys: PublicKeysEndpoint
  largeBodies: LargeBodies
}): Route[] {
  const { validation, batch, deactivation, publicKeys, largeBodies } = parts
  const validateV1: Route['run'] = (exchange, body) => validation.run(exchange, body, 'validateV1')
  const validateV2: Route['run'] = (exchange, body) => validation.run(exchange, body, 'validateV2')
  const validateBatch: Route['run'] = (exchange, body) => batch.run(exchange, body)
  const deactivate: Route['run'] = (exchange, body) => deactivation.run(exchange, body)
  const currentKey: Route['run'] = (exchange) => publicKeys.current(exchange)
  const allKeys: Route['run'] = (exchange) => publicKeys.all(exchange)
  const [post, get] = [
    { method: 'POST', maxBodyBytes: MAX_BODY_BYTES, largeBodies: null },
    { method: 'GET', maxBodyBytes: MAX_BODY_BYTES, largeBodies: null },
  ] as const
  return [
    { ...post, path: PATHS.validateV2, shape: 'v2', run: validateV2 },
    {
      ...post,
      path: PATHS.validateBatch,
      shape: 'v2',
      maxBodyBytes: MAX_BATCH_BODY_BYTES,
      largeBodies,
      run: validateBatch,
    },
    { ...post, path: PATHS.validateV1, shape: 'v1', run: validateV1 },
    { ...post, path: PATHS.activate, shape: 'v1', run: validateV1 },
    { ...post, path: PATHS.deactivate, shape: 'v1', run: deactivate },
    { ...get, path: PATHS.publicKey, shape: 'v1', run: currentKey },
    { ...get, path: PATHS.publicKeys, shape: 'v1', run: allKeys },
  ]
}
