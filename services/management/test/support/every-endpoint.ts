/**
 * Sends requests to any endpoint of one service with two organizations, and validates every response against `/openapi.json`.
 * The list of endpoints comes from their definitions, so it includes new ones.
 */

import { ALL_PERMISSIONS, createdToken } from '@keyward/contract'
import { createdMember } from '@keyward/contract/management/sign-in'
import { expect } from 'vitest'
import { z } from 'zod'

import { endpoints } from '../../src/endpoints.ts'
import type { Endpoint } from '../../src/operations/implement.ts'
import { createResponseValidator, documentSchema, type ResponseValidator } from './conformance.ts'
import {
  type ApiResponse,
  type CallOptions,
  type Harness,
  operatorToken,
  startHarnessWithValidator,
} from './harness.ts'
import { NO_MAIL_SERVER } from './mail-server.ts'
import { isOfPerson, type Request, validRequest } from './requests.ts'
import { createVendor, expectBody, type Vendor } from './vendor.ts'

/** An id that no resource has. */
export const UNKNOWN_ID = '019a8b3c-5d2e-7f10-8a4b-6c7d8e9f0a1b'

export interface EveryEndpoint {
  harness: Harness
  vendor: Vendor
  stranger: Vendor
  /** Returns the secret of a credential that the endpoint accepts. */
  credential(endpoint: Endpoint, owner?: Vendor): string
  /** Returns the credentials of every kind with which the stranger may call the endpoint: token, access token and session, or API key. */
  strangers(endpoint: Endpoint): CallOptions[]
  /** Creates the resources that a valid request needs, and returns the request. */
  make(endpoint: Endpoint): Promise<Request>
  /** Sends a request with a credential that the endpoint accepts, and fails the test when the response is not documented. */
  send(endpoint: Endpoint, request: Request, options?: CallOptions): Promise<ApiResponse>
}

export async function startEveryEndpoint(): Promise<EveryEndpoint> {
  const harness = await startHarnessWithValidator(NO_MAIL_SERVER)
  const vendor = await createVendor(harness)
  const stranger = await createVendor(harness, 'STANDARD', 'Stranger')
  const kinds = await credentialsOf(harness, stranger)
  const document = await harness.call('GET', '/openapi.json', { token: null })
  const validator: ResponseValidator = createResponseValidator(documentSchema.parse(document.body))
  const credential = (endpoint: Endpoint, owner = vendor): string => {
    if (endpoint.operation.needs === 'operator') return operatorToken
    return endpoint.operation.needs === 'apiKey' ? owner.apiKey : owner.managementToken
  }
  return {
    harness,
    vendor,
    stranger,
    credential,
    strangers: (endpoint) => (endpoint.operation.needs === 'apiKey' ? [{ token: stranger.apiKey }] : kinds),
    make: (endpoint) => validRequest(endpoint.name, { harness, vendor }),
    async send(endpoint, request, options = {}) {
      const body = options.raw === undefined && request.body !== undefined ? { body: request.body } : {}
      const response = await harness.call(endpoint.method, request.path, {
        token: credential(endpoint),
        ...body,
        ...options,
      })
      expect(validator.violation(endpoint, response)).toBeNull()
      expect(response.headers.get('x-request-id')).toBeTruthy()
      return response
    },
  }
}

/** Returns the vendor's management token, and an access token and a session of a member with all permissions. */
async function credentialsOf({ call, origin }: Harness, vendor: Vendor): Promise<CallOptions[]> {
  const body = { email: 'stranger@example.com', permissions: ALL_PERMISSIONS }
  const member = expectBody(await vendor.call('POST', 'members', { body }), 201, createdMember.required())
  const access = { name: 'access', permissions: ALL_PERMISSIONS }
  const made = await vendor.call('POST', `members/${member.id}/access-tokens`, { body: access })
  const { secret } = expectBody(made, 201, createdToken.required({ secret: true }))
  const invitation = { invitation: member.invitation.secret }
  const session = await call('POST', 'sessions', { token: null, body: invitation, headers: { origin } })
  const cookie = session.headers.get('set-cookie')?.split(';')[0] ?? ''
  return [{ token: vendor.managementToken }, { token: secret }, { token: null, headers: { cookie, origin } }]
}

/** Returns a request for resources that do not exist. The checks before the handler do not read these resources. */
export function unknownRequest({ path }: Endpoint): Request {
  return {
    path: path
      .slice(1)
      .replace('{provider}', 'shop')
      .replaceAll(/\{\w+\}/g, UNKNOWN_ID),
  }
}

export const hasBody = ({ operation }: Endpoint) => operation.body !== undefined
export const isList = ({ operation }: Endpoint) => operation.query?.shape['cursor'] !== undefined
/** Returns whether the path contains ids. The path of a set contains its name instead, and that of an order the ids of a shop. */
export const hasParams = ({ params }: Endpoint) =>
  params !== undefined && !('set' in params.shape) && !('provider' in params.shape)

/** Returns the endpoints that satisfy the condition, except those of a person, with their names for `test.each`. */
export function named(condition: (endpoint: Endpoint) => boolean = () => true): [string, Endpoint][] {
  return endpoints.filter((endpoint) => !isOfPerson(endpoint) && condition(endpoint)).map((one) => [one.name, one])
}

/** Returns the body of a response as it is stored for a repeated request. */
export function withoutSecrets({ operation: { secrets } }: Endpoint, body: unknown): unknown {
  const record = z.record(z.string(), z.unknown()).safeParse(body)
  if (!record.success || !secrets) return body
  return Object.fromEntries(Object.entries(record.data).filter(([name]) => !secrets.includes(name)))
}
