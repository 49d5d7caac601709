/** Tests entitlements in responses (docs/api.md#v13), and API keys that are bound to a product (docs/api.md#v12). */

import { insertApiKey, insertProduct, insertRule } from '@keyward/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import type { RunningValidator } from '../../src/validator.ts'
import { createWorld, type Reply, send, startLoaded, type World } from '../harness.ts'

const V2 = '/api/v2/license/validate'
const V1 = '/api/v1/validate'
const DEFAULTS = { edition: 'standard', seats: 5, export: true, 'max.size': -1, note: 'é "quoted"' }

let world: World
let validator: RunningValidator
let productId: string
let otherProductId: string
/** The secret of an API key that is bound to `productId`. */
let boundSecret: string

beforeAll(async () => {
  world = await createWorld()
  const { pool } = world.database
  const { organizationId } = world
  productId = await insertProduct(pool, { organizationId, entitlements: DEFAULTS })
  otherProductId = await insertProduct(pool, { organizationId })
  boundSecret = (await insertApiKey(pool, { organizationId, productId })).secret
  validator = await startLoaded(world.database.validatorUrl)
})
afterAll(async () => {
  await validator.close()
  await world.database.drop()
})

const post = (path: string, body: object, secret = world.secret): Promise<Reply> =>
  send(validator.port, path, { body, secret })

const verdict = z.object({ code: z.string(), entitlements: z.record(z.string(), z.unknown()).optional() })

/** Sends a check that requests the entitlements. Returns the entitlements as JSON. */
async function shown(key: string): Promise<string> {
  const { body } = await post(V2, { license: key, include: ['entitlements'] })
  return JSON.stringify(verdict.parse(body).entitlements)
}

/** Returns the members in the order in which Postgres stores them. */
const inOrder = (members: object): object =>
  Object.fromEntries(Object.entries(members).toSorted(([a], [b]) => a.length - b.length || (a < b ? -1 : 1)))

describe('entitlements', () => {
  test('returns entitlements as the last member of a VALID response when the request includes them', async () => {
    const { key } = await world.license({ productId, maxMachines: null, expiresAt: new Date('2100-01-02T03:04:05Z') })
    const defaults = JSON.stringify(inOrder(DEFAULTS))
    await expect.poll(() => shown(key)).toBe(defaults)
    const reply = await post(V2, { license: key, include: ['entitlements'] })
    const valid = '"code":"VALID","expiresAt":"2100-01-02T03:04:05.000Z"'
    const message = '"message":"The license is valid."'
    expect(reply.text).toBe(`{"valid":true,"status":200,${message},${valid},"entitlements":${defaults}}`)
    for (const path of [V1, '/api/v1/activate']) {
      const v1 = await post(path, { licenseKey: key, include: ['entitlements'] })
      expect(v1.text).toBe(`{"valid":true,${valid},"entitlements":${defaults}}`)
      expect((await post(path, { licenseKey: key })).text).toBe(`{"valid":true,${valid}}`)
      expect((await post(path, { licenseKey: key, include: [] })).text).toBe(`{"valid":true,${valid}}`)
    }
    expect((await post(V2, { license: key, include: null })).text).not.toContain('entitlements')
  })

  test('merges the entitlements of the product and the license, and omits null and `false`', async () => {
    const { key } = await world.license({
      productId,
      maxMachines: null,
      entitlements: { seats: 50, export: null, beta: true },
    })
    const { export: _, ...rest } = DEFAULTS
    await expect.poll(() => shown(key)).toBe(JSON.stringify({ ...inOrder({ ...rest, seats: 50 }), beta: true }))
    const other = await world.license({
      productId: otherProductId,
      maxMachines: null,
      entitlements: { a: 1, b: null, c: false },
    })
    await expect.poll(() => shown(other.key)).toBe(JSON.stringify({ a: 1 }))
    const none = await world.license({ productId: otherProductId, maxMachines: null })
    await expect.poll(() => shown(none.key)).toBe(JSON.stringify({}))
  })

  test('applies changed entitlements of a product to all of its licenses', async () => {
    const { pool } = world.database
    const id = await insertProduct(pool, { organizationId: world.organizationId, entitlements: { seats: 1 } })
    const licenses = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        world.license({ productId: id, maxMachines: null, ...(n % 2 === 0 ? {} : { entitlements: { own: n } }) }),
      ),
    )
    const all = (): Promise<string[]> => Promise.all(licenses.map(({ key }) => shown(key)))
    const expected = (defaults: object): string[] =>
      licenses.map((_, n) => JSON.stringify(n % 2 === 0 ? defaults : { ...defaults, own: n }))
    await expect.poll(all).toEqual(expected({ seats: 1 }))
    await pool.query(`update products set entitlements = '{"seats": 2}' where id = $1`, [id])
    await expect.poll(all).toEqual(expected({ seats: 2 }))
    await pool.query('update products set entitlements = null where id = $1', [id])
    await expect.poll(all).toEqual(expected({}))
  })

  test('returns entitlements after a claim of a slot and for an excluded machine', async () => {
    const { key, id } = await world.license({ productId, maxMachines: 1, entitlements: { seats: 7 } })
    const ask = (fingerprint: string): Promise<Reply> =>
      post(V2, { license: key, fingerprint, include: ['entitlements'] })
    await expect.poll(async () => (await ask('first')).body).toMatchObject({ entitlements: { seats: 7 } })
    const full = await ask('second')
    expect([full.status, full.text.includes('entitlements')]).toEqual([400, false])
    const value = 'second'
    const rule = {
      organizationId: world.organizationId,
      kind: 'EXCLUSION',
      type: 'HWID',
      value,
      licenseId: id,
    } as const
    await insertRule(world.database.pool, rule)
    await expect.poll(async () => (await ask('second')).body).toMatchObject({ entitlements: { seats: 7 } })
  })

  test.each([{ include: 'entitlements' }, { include: ['metadata'] }, { include: [7] }, { include: {} }])(
    'returns INVALID_REQUEST for an unknown include: %j',
    async ({ include }) => {
      expect((await post(V2, { license: 'any', include })).status).toBe(422)
      expect((await post(V1, { licenseKey: 'any', include })).status).toBe(422)
    },
  )
})

describe('a bound API key', () => {
  test('releases no slot of another product with a bound key', async () => {
    const foreign = await world.license({ productId: otherProductId, maxMachines: 1 })
    await expect
      .poll(async () => (await post(V1, { licenseKey: foreign.key, fingerprint: 'm' })).body)
      .toMatchObject({ valid: true })
    const body = { licenseKey: foreign.key, fingerprint: 'm' }
    expect((await post('/api/v1/deactivate', body, boundSecret)).body).toEqual({ deactivated: false })
    expect((await post('/api/v1/deactivate', body)).body).toEqual({ deactivated: true })
  })

  test('finds a license with a bound key only while the license belongs to the product of the key', async () => {
    const { key, id } = await world.license({ productId: otherProductId, maxMachines: null })
    const code = async (): Promise<string> =>
      verdict.parse((await post(V1, { licenseKey: key }, boundSecret)).body).code
    await expect.poll(async () => (await post(V1, { licenseKey: key })).body).toMatchObject({ valid: true })
    expect(await code()).toBe('NOT_FOUND')
    const move = (to: string) =>
      world.database.pool.query('update licenses set product_id = $2 where id = $1', [id, to])
    await move(productId)
    await expect.poll(code).toBe('VALID')
    await move(otherProductId)
    await expect.poll(code).toBe('NOT_FOUND')
  })

  test('revokes a bound key when its product is deleted with SQL, and keeps the binding', async () => {
    const { pool } = world.database
    const { organizationId } = world
    const gone = await insertProduct(pool, { organizationId })
    const { id, secret } = await insertApiKey(pool, { organizationId, productId: gone })
    const status = async (): Promise<number> => (await post(V1, { licenseKey: 'any' }, secret)).status
    await expect.poll(status).toBe(200)
    const rebind = pool.query('update credentials set product_id = null where id = $1', [id])
    await expect(rebind).rejects.toThrow('The product of a credential cannot be changed')
    await pool.query('delete from products where id = $1', [gone])
    await expect.poll(status).toBe(401)
    const kept = 'select product_id from credentials where id = $1 and revoked_at is not null'
    expect((await pool.query(kept, [id])).rows).toEqual([{ product_id: gone }])
  })
})
