/**
 * Tests an installation through its base address. The test creates an organization with a license, requests verdicts for the
 * license through TLS, revokes the license, and deletes the created resources. A failed test may leave some of these resources.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { z } from 'zod'

import type { HttpResponse, HttpsClient } from '../shared/https-client.ts'

const createdSchema = z.object({ id: z.string() })
const organizationSchema = z.object({ id: z.string(), managementToken: z.string(), apiKey: z.string() })
const licenseSchema = z.object({ id: z.string(), key: z.string() })
const verdictSchema = z.object({ valid: z.boolean(), code: z.string() })
const addressSchema = z.looseObject({ ip: z.string().nullable() })

/** The time within which both services must respond, and a change must reach every validator. */
const LIMIT_MS = 60_000

interface SmokeTestOptions {
  readonly client: HttpsClient
  readonly operatorToken: string
  /** Receives one sentence per step. */
  readonly report: (line: string) => void
}

/** Runs the test. Rejects with the error of the first step that fails. */
export async function runSmokeTest({ client, operatorToken, report }: SmokeTestOptions): Promise<void> {
  const call = async <T>(method: string, path: string, token: string, body: object | undefined, schema: z.ZodType<T>) =>
    schema.parse(expectSuccess(`${method} ${path}`, await client.send(method, `/api/v1${path}`, token, body)).body)
  const startedAt = performance.now()
  await untilReady(client, operatorToken)
  const body = { name: `Smoke test ${new Date().toISOString()}`, plan: 'STANDARD' }
  const { id, managementToken, apiKey } = await call('POST', '/organizations', operatorToken, body, organizationSchema)
  try {
    const create = async <T>(path: string, content: object, schema: z.ZodType<T>): Promise<T> =>
      call('POST', path, managementToken, content, schema)
    const product = await create('/products', { name: 'Smoke test' }, createdSchema)
    const customer = await create('/customers', { email: 'smoke-test@example.com', name: 'Smoke test' }, createdSchema)
    const policy = { type: 'PERPETUAL', maxMachines: 1, expiresAt: null }
    const license = await create('/licenses', { productId: product.id, customerId: customer.id, policy }, licenseSchema)
    report('Management created an organization, a product, a customer and a license.')
    const check = async (fingerprint: string): Promise<string> => {
      const content = { license: license.key, fingerprint }
      const response = await client.send('POST', '/api/v2/license/validate', apiKey, content)
      const verdict = verdictSchema.safeParse(response.body)
      return verdict.success ? verdict.data.code : `status ${response.status}`
    }
    await expectVerdict(check, 'machine-1', 'VALID')
    report(`The first check is VALID, ${((performance.now() - startedAt) / 1_000).toFixed(1)} s after the start.`)
    await expectVerdict(check, 'machine-2', 'TOO_MANY_MACHINES')
    const { ip } = await call('GET', '/access-rules/my-ip', managementToken, undefined, addressSchema)
    report(`A second machine is rejected with TOO_MANY_MACHINES. The services see this caller as ${ip ?? 'unknown'}.`)
    await call('POST', `/licenses/${license.id}/revoke`, managementToken, {}, z.unknown())
    await expectVerdict(check, 'machine-1', 'REVOKED')
    report('The revoked license is rejected with REVOKED.')
    for (const path of [`/licenses/${license.id}`, `/products/${product.id}`, `/customers/${customer.id}`])
      await call('DELETE', path, managementToken, undefined, z.unknown())
  } finally {
    await call('DELETE', `/organizations/${id}`, operatorToken, undefined, z.unknown()).catch(() => undefined)
  }
  report('The installation works.')
}

function expectSuccess(request: string, response: HttpResponse): HttpResponse {
  if (response.status >= 200 && response.status < 300) return response
  throw new Error(`${request} returned ${response.status}: ${JSON.stringify(response.body)}`)
}

/** Repeats a request until management responds to it, because the installation may have just been started. */
async function untilReady(client: HttpsClient, operatorToken: string): Promise<void> {
  const endMs = performance.now() + LIMIT_MS
  for (;;) {
    const reason = await client.send('GET', '/api/v1/validators', operatorToken).then(
      ({ status }) => (status === 200 ? '' : `status ${status}`),
      (error: unknown) => String(error),
    )
    if (reason === '') return
    if (performance.now() > endMs) throw new Error(`The base address does not respond: ${reason}`)
    await sleep(500)
  }
}

/** Repeats a check until it returns `code`, because validators receive changes after management has responded. */
async function expectVerdict(
  check: (fingerprint: string) => Promise<string>,
  fingerprint: string,
  code: string,
): Promise<void> {
  const endMs = performance.now() + LIMIT_MS
  for (;;) {
    const found = await check(fingerprint).catch(String)
    if (found === code) return
    if (performance.now() > endMs) throw new Error(`The check of ${fingerprint} must be ${code}; got ${found}`)
    await sleep(200)
  }
}
