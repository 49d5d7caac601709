/** Creates vendors through the API, and the resources that most tests need. Responses are parsed with the contract's schemas. */

import {
  accessRule,
  createdOrganization,
  customer as customerSchema,
  license as licenseSchema,
  type Plan,
} from '@keyward/contract'
import { product as productSchema } from '@keyward/contract/management/products'
import { template as templateSchema, type Template } from '@keyward/contract/management/templates'
import { z } from 'zod'

import type { ApiResponse, Caller, Harness } from './harness.ts'

/** Returns the parsed body of a response. Throws unless the response has the status. */
export function expectBody<Schema extends z.ZodType>(
  response: ApiResponse,
  status: number,
  schema: Schema,
): z.output<Schema> {
  if (response.status !== status) throw new Error(`Expected ${status}, got ${response.status}: ${response.text}`)
  return schema.parse(response.body)
}

const strings = createdOrganization.required()
const coded = z.object({ code: z.string() })

/** Returns the status, followed by the code for an error, as in `409 IN_USE`. */
export function outcome(response: ApiResponse): string {
  const parsed = coded.safeParse(response.body)
  return response.status >= 400 && parsed.success ? `${response.status} ${parsed.data.code}` : String(response.status)
}

export interface Vendor {
  id: string
  call: Caller
  managementToken: string
  apiKey: string
  product(name?: string): Promise<string>
  customer(fields?: object): Promise<string>
  template(fields?: object, productId?: string): Promise<Template>
  license(fields?: object): Promise<z.output<typeof licenseSchema>>
  rule(fields: object): Promise<z.output<typeof accessRule>>
}

export const perpetual = { type: 'PERPETUAL', maxMachines: 5 }

/**
 * Sends a request again while it gets 503, at most five times, as clients do. On a busy machine, a connection to Postgres may need more than
 * the two seconds that the service waits.
 */
export async function patiently<Reply extends { status: number }>(send: () => Promise<Reply>): Promise<Reply> {
  let response = await send()
  for (let attempt = 0; response.status === 503 && attempt < 5; attempt++) response = await send()
  return response
}

/** Returns a harness whose callers repeat requests that get 503. */
export function patient(harness: Harness): Harness {
  const as: Harness['as'] = (token) => {
    const call = harness.as(token)
    return (...request) => patiently(() => call(...request))
  }
  return { ...harness, as }
}

export async function createVendor(harness: Harness, plan: Plan = 'STANDARD', name = 'Acme'): Promise<Vendor> {
  const response = await patiently(() => harness.call('POST', 'organizations', { body: { name, plan } }))
  const { id, managementToken, apiKey } = expectBody(response, 201, strings)
  const call = harness.as(managementToken)
  const product = async (productName = 'Studio') =>
    expectBody(await call('POST', 'products', { body: { name: productName } }), 201, productSchema).id
  const customer = async (fields: object = {}) =>
    expectBody(await call('POST', 'customers', { body: { email: 'ada@example.com', ...fields } }), 201, customerSchema)
      .id
  return {
    id,
    call,
    managementToken,
    apiKey,
    product,
    customer,
    async template(fields = {}, productId) {
      const body = { name: 'Studio, yearly', policy: { type: 'SUBSCRIPTION', durationDays: 365 }, ...fields }
      const path = `products/${productId ?? (await product())}/templates`
      return expectBody(await call('POST', path, { body }), 201, templateSchema)
    },
    async license(fields = {}) {
      const body: object = { policy: perpetual, ...fields }
      const whole = {
        ...('productId' in body ? {} : { productId: await product() }),
        ...('customerId' in body ? {} : { customerId: await customer() }),
        ...body,
      }
      return expectBody(await call('POST', 'licenses', { body: whole }), 201, licenseSchema)
    },
    async rule(fields) {
      const body = { kind: 'BLACKLIST', type: 'IP', value: '203.0.113.7', scope: 'ORGANIZATION', ...fields }
      return expectBody(await call('POST', 'access-rules', { body }), 201, accessRule)
    },
  }
}
