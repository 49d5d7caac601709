/** Kills the service between storing the events of shops and handling them, and while it handles them (docs/api.md#b6). */

import { HISTORIES, SHOP_SECRET, SHOPS, signatureOf } from '@keyward/testkit/shops'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { endChildren, OPERATOR_TOKEN, type Service, startManagement, until, untilReady } from './support/children.ts'
import { send } from './support/client.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let management: Service

beforeAll(async () => {
  postgres = await createPostgres()
  pool = openPool(postgres.url)
  management = await startManagement(postgres.url)
  await untilReady(management)
})
afterAll(async () => {
  await endChildren()
  await pool.end()
  await postgres.remove()
})

const created = z.object({ id: z.string() })

async function call<Schema extends z.ZodType>(
  method: string,
  path: string,
  secret: string,
  schema: Schema,
  body?: object,
) {
  const { text } = await send(management.port, `/api/v1${path}`, { method, secret, body })
  return schema.parse(JSON.parse(text))
}

test('a crash before or during the handling of events repeats nothing and loses nothing, in any shop', async () => {
  const sales = await Promise.all(
    SHOPS.map(async (shop) => {
      const organization = z.object({ managementToken: z.string() })
      const { managementToken: token } = await call('POST', '/organizations', OPERATOR_TOKEN, organization, {
        name: shop,
      })
      const { priceId, orderOnPage, events } = HISTORIES[shop]('4711', Date.now() - 60_000)
      const product = await call('POST', '/products', token, created, { name: 'Studio' })
      const template = { name: 'Studio', policy: { type: 'PERPETUAL' }, priceIds: [priceId] }
      await call('POST', `/products/${product.id}/templates`, token, created, template)
      const connection = await call('POST', '/commerce', token, created, { name: 'Shop', shop, secret: SHOP_SECRET })
      const paid = events.filter(({ id }) => !id.includes('refunded') && !id.includes('dispute'))
      const sendAll = async () => {
        const statuses = []
        for (const { id, body } of paid) {
          const headers = signatureOf(shop, JSON.stringify(body), id)
          statuses.push(
            (await send(management.port, `/api/v1/commerce/${connection.id}/events`, { body, headers })).status,
          )
        }
        return new Set(statuses)
      }
      return { shop, token, orderOnPage, sendAll }
    }),
  )
  const holder = await pool.connect()
  await holder.query('begin')
  await holder.query('lock table licenses in exclusive mode')
  for (const { shop, sendAll } of sales) expect(await sendAll(), shop).toEqual(new Set([200]))
  const waiting = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and query ilike '%licenses%'`
  await until(async () => (await pool.query<{ n: number }>(waiting)).rows[0]!.n > 0, 50)
  const pending = await pool.query(`select from commerce_events where state = 'PENDING'`)
  expect(pending.rowCount).toBeGreaterThan(sales.length)
  management.signal('SIGKILL')
  await management.exit
  await holder.query('rollback')
  holder.release()
  const licenses = await pool.query('select from licenses')
  expect(licenses.rowCount).toBe(0)

  management = await startManagement(postgres.url)
  await untilReady(management)
  const page = z.object({ lines: z.array(z.object({ state: z.string(), licenses: z.array(z.unknown()) })) })
  for (const { shop, token, orderOnPage, sendAll } of sales) {
    await until(async () => {
      const { rows } = await pool.query(`select from commerce_events where next_attempt_at is not null`)
      return rows.length === 0
    }, 50)
    expect(await sendAll(), shop).toEqual(new Set([200]))
    const { lines } = await call('GET', `/orders/${shop}/${orderOnPage}?wait=5`, token, page)
    expect(lines, shop).toMatchObject([{ state: 'paid', licenses: [{}] }])
  }
  const { rows } = await pool.query<{ n: number }>('select count(*)::int as n from licenses')
  expect(rows).toEqual([{ n: sales.length }])
})
