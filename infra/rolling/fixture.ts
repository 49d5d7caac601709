/**
 * Creates the organization whose licenses are checked during a rolling upgrade, and defines the checks. The verdict of each check must stay
 * the same.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import type { Code } from '@keyward/contract'
import { z } from 'zod'

import type { HttpsClient } from '../shared/https-client.ts'

export interface Fixture {
  apiKey: string
  managementToken: string
  productId: string
  customerId: string
  cases: readonly CheckCase[]
}

export interface CheckCase {
  expected: Code
  /** The number of checks of this case in every 100 checks, on average. */
  weight: number
  /** Returns the body of a v2 check. `turn` is different for each check. */
  body: (turn: number) => object
}

const validatorListSchema = z.object({ data: z.array(z.object({ behindBy: z.number().nullable() })) })
const idSchema = z.object({ id: z.string() })
const licenseSchema = z.object({ id: z.string(), key: z.string() })
const organizationSchema = z.object({ managementToken: z.string(), apiKey: z.string() })

export async function createFixture(client: HttpsClient, operatorToken: string): Promise<Fixture> {
  await untilFollowing(client, operatorToken)
  const call = async <T>(token: string, path: string, body: object, schema: z.ZodType<T>): Promise<T> => {
    // `Prefer: wait` waits for every validator, because any of them may receive the first check.
    const response = await client.send('POST', `/api/v1${path}`, token, body, { prefer: 'wait=10' })
    if (response.status !== 200 && response.status !== 201)
      throw new Error(`POST ${path}: ${JSON.stringify(response.body)}`)
    return schema.parse(response.body)
  }
  const plan = { name: 'Rolling', plan: 'STANDARD' }
  const { managementToken, apiKey } = await call(operatorToken, '/organizations', plan, organizationSchema)
  const make = <T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> =>
    call(managementToken, path, body, schema)
  const productId = (await make('/products', { name: 'App' }, idSchema)).id
  const customerId = (await make('/customers', { email: 'ada@example.com' }, idSchema)).id
  const createLicense = (maxMachines: number): Promise<z.infer<typeof licenseSchema>> =>
    make('/licenses', { productId, customerId, policy: { type: 'PERPETUAL', maxMachines } }, licenseSchema)

  const [plain, revoked, blacklisted, full, open] = await Promise.all([5, 5, 5, 1, 100_000].map(createLicense))
  if (!plain || !revoked || !blacklisted || !full || !open) throw new Error('expected five licenses')
  await make(`/licenses/${revoked.id}/revoke`, {}, idSchema)
  const rule = { kind: 'BLACKLIST', type: 'HWID', value: 'stolen', scope: 'LICENSE', scopeId: blacklisted.id }
  await make('/access-rules', rule, idSchema)

  const cases: CheckCase[] = [
    { expected: 'VALID', weight: 50, body: () => ({ license: plain.key, fingerprint: 'known' }) },
    { expected: 'VALID', weight: 10, body: (turn) => ({ license: open.key, fingerprint: `new-${turn}` }) },
    { expected: 'NOT_FOUND', weight: 10, body: () => ({ license: 'NO-SUCH-KEY', fingerprint: 'known' }) },
    { expected: 'BLACKLISTED', weight: 10, body: () => ({ license: blacklisted.key, fingerprint: 'stolen' }) },
    { expected: 'REVOKED', weight: 10, body: () => ({ license: revoked.key, fingerprint: 'known' }) },
    { expected: 'TOO_MANY_MACHINES', weight: 10, body: () => ({ license: full.key, fingerprint: 'second' }) },
  ]
  const fixture = { apiKey, managementToken, productId, customerId, cases }
  await activate(client, fixture, { license: full.key, fingerprint: 'first' })
  return fixture
}

/**
 * Resolves when every validator reports its position in the change log. `Prefer: wait` ignores a validator that has not reported its
 * position.
 */
async function untilFollowing(client: HttpsClient, operatorToken: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const { data } = validatorListSchema.parse((await client.send('GET', '/api/v1/validators', operatorToken)).body)
    if (data.length > 0 && data.every(({ behindBy }) => behindBy !== null)) return
    await sleep(20)
  }
  throw new Error('no validator follows the change log')
}

/** Retries the check until it returns VALID. */
async function activate(client: HttpsClient, fixture: Fixture, body: object): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const response = await client.send('POST', '/api/v2/license/validate', fixture.apiKey, body)
    if (response.status === 200) return
    if (attempt === 500) throw new Error(`the new license is not valid: ${JSON.stringify(response.body)}`)
    await sleep(20)
  }
}
