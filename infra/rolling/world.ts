/** What the checks of a rolling restart are about: one license for each verdict that must never change. */
import { setTimeout as sleep } from 'node:timers/promises'

import type { Code } from '@keyward/contract'
import { z } from 'zod'

import type { Client } from './client.ts'

export interface World {
  apiKey: string
  managementToken: string
  productId: string
  customerId: string
  cases: readonly CheckCase[]
}

export interface CheckCase {
  expected: Code
  /** Out of all cases together. */
  weight: number
  /** The body of a v2 check; `turn` tells calls apart. */
  body: (turn: number) => object
}

const listOf = z.object({ data: z.array(z.object({ behindBy: z.number().nullable() })) })
const idOf = z.object({ id: z.string() })
const licenseOf = z.object({ id: z.string(), key: z.string() })
const organizationOf = z.object({ managementToken: z.string(), apiKey: z.string() })

export async function createWorld(client: Client, operatorToken: string): Promise<World> {
  await untilFollowed(client, operatorToken)
  const call = async <T>(token: string, path: string, body: object, schema: z.ZodType<T>): Promise<T> => {
    // Checks may come to any validator as soon as the world is there.
    const answer = await client.send('POST', `/api/v1${path}`, token, body, { prefer: 'wait=10' })
    if (answer.status !== 200 && answer.status !== 201) throw new Error(`POST ${path}: ${JSON.stringify(answer.body)}`)
    return schema.parse(answer.body)
  }
  const plan = { name: 'Rolling', plan: 'STANDARD' }
  const { managementToken, apiKey } = await call(operatorToken, '/organizations', plan, organizationOf)
  const make = <T>(path: string, body: object, schema: z.ZodType<T>): Promise<T> =>
    call(managementToken, path, body, schema)
  const productId = (await make('/products', { name: 'App' }, idOf)).id
  const customerId = (await make('/customers', { email: 'ada@example.com' }, idOf)).id
  const createLicense = (maxMachines: number): Promise<z.infer<typeof licenseOf>> =>
    make('/licenses', { productId, customerId, policy: { type: 'PERPETUAL', maxMachines } }, licenseOf)

  const [plain, revoked, listed, full, open] = await Promise.all([5, 5, 5, 1, 1_000_000].map(createLicense))
  if (!plain || !revoked || !listed || !full || !open) throw new Error('There are five licenses')
  await make(`/licenses/${revoked.id}/revoke`, {}, idOf)
  const rule = { kind: 'BLACKLIST', type: 'HWID', value: 'stolen', scope: 'LICENSE', scopeId: listed.id }
  await make('/access-rules', rule, idOf)

  const cases: CheckCase[] = [
    { expected: 'VALID', weight: 50, body: () => ({ license: plain.key, fingerprint: 'known' }) },
    { expected: 'VALID', weight: 10, body: (turn) => ({ license: open.key, fingerprint: `new-${turn}` }) },
    { expected: 'NOT_FOUND', weight: 10, body: () => ({ license: 'NO-SUCH-KEY', fingerprint: 'known' }) },
    { expected: 'BLACKLISTED', weight: 10, body: () => ({ license: listed.key, fingerprint: 'stolen' }) },
    { expected: 'REVOKED', weight: 10, body: () => ({ license: revoked.key, fingerprint: 'known' }) },
    { expected: 'TOO_MANY_MACHINES', weight: 10, body: () => ({ license: full.key, fingerprint: 'second' }) },
  ]
  const world = { apiKey, managementToken, productId, customerId, cases }
  await activate(client, world, { license: full.key, fingerprint: 'first' })
  return world
}

/** Until validators say how far they follow: before that, no change waits for them. */
async function untilFollowed(client: Client, operatorToken: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const { data } = listOf.parse((await client.send('GET', '/api/v1/validators', operatorToken)).body)
    if (data.length > 0 && data.every(({ behindBy }) => behindBy !== null)) return
    await sleep(20)
  }
  throw new Error('No validator follows the changes')
}

/** Until every validator knows the license: the first that does answers VALID, the others claim again. */
async function activate(client: Client, world: World, body: object): Promise<void> {
  for (let attempt = 0; ; attempt++) {
    const answer = await client.send('POST', '/api/v2/license/validate', world.apiKey, body)
    if (answer.status === 200) return
    if (attempt === 500) throw new Error(`A new license is not valid: ${JSON.stringify(answer.body)}`)
    await sleep(20)
  }
}
