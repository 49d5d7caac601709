import { setTimeout as sleep } from 'node:timers/promises'

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  isReady,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  until,
  untilReady,
} from './support/children.ts'
import { type Reply, send } from './support/client.ts'
import { byLength, figure, quantiles } from './support/length.ts'
import { createPostgres, openPool, type TestPostgres } from './support/postgres.ts'

let postgres: TestPostgres
let management: Service
let token: string

beforeAll(async () => {
  postgres = await createPostgres()
  management = await startManagement(postgres.url)
  await untilReady(management)
  const reply = await send(management.port, '/api/v1/organizations', { body: { name: 'Acme' }, secret: OPERATOR_TOKEN })
  token = z.object({ managementToken: z.string() }).parse(JSON.parse(reply.text)).managementToken
})
afterAll(async () => {
  await endChildren()
  await postgres.remove()
})

let made = 0
const createProduct = (key: string): Promise<Reply> =>
  send(management.port, '/api/v1/products', {
    body: { name: `Product ${key}` },
    secret: token,
    headers: { 'idempotency-key': key },
    limitMs: 30_000,
  })

const faults: Record<string, { begin: () => Promise<unknown>; end: () => Promise<unknown> }> = {
  'stopped in order': { begin: () => postgres.stop('fast'), end: () => postgres.start() },
  crashed: { begin: () => postgres.stop('immediate'), end: () => postgres.start() },
  frozen: { begin: () => postgres.freeze(), end: () => postgres.thaw() },
}

test.each(Object.keys(faults))(
  'a change while Postgres is %s succeeds or fails with 503, and a retry applies it once',
  async (name) => {
    const fault = faults[name]
    const state = {
      isOver: false,
      refused: [] as string[],
      done: [] as string[],
      wrong: [] as string[],
      tookMs: [] as number[],
    }
    const writers = Array.from({ length: 6 }, async () => {
      while (!state.isOver) {
        const key = `key-${++made}`
        const reply = await createProduct(key)
        state.tookMs.push(reply.tookMs)
        if (reply.status === 201) state.done.push(key)
        else if (reply.status === 503 && reply.code === 'UNAVAILABLE') state.refused.push(key)
        else state.wrong.push(`${reply.status} ${reply.code} after ${Math.round(reply.tookMs)} ms`)
        await sleep(5)
      }
    })
    await sleep(300)
    await fault?.begin()
    await until(async () => !(await isReady(management)))
    await sleep(byLength(1_000, 5_000))
    await fault?.end()
    await until(() => isReady(management))
    const doneBefore = state.done.length
    await until(() => state.done.length > doneBefore + 10)
    state.isOver = true
    await Promise.all(writers)
    figure(`Management while Postgres is ${name}`, {
      done: state.done.length,
      refused: state.refused.length,
      ...quantiles(state.tookMs),
    })
    expect(state.wrong).toEqual([])
    for (const key of state.refused) await until(async () => (await createProduct(key)).status === 201)
    const pool = openPool(postgres.url)
    const { rows } = await pool.query<{ name: string }>('select name from products')
    await pool.end()
    const names = rows.map((row) => row.name)
    const expected = [...state.done, ...state.refused].map((key) => `Product ${key}`)
    expect(names.filter((one, i) => names.indexOf(one) !== i)).toEqual([])
    expect(expected.filter((one) => !names.includes(one))).toEqual([])
  },
)
