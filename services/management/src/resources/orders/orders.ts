/** Defines the endpoints of orders (docs/api.md#b1). */

import { setTimeout as sleep } from 'node:timers/promises'

import { type Order, orders as operations } from '@keyward/contract/management/orders'
import { Tally } from '@keyward/runtime/tally'

import { runInside } from '../../admission/fair-gate.ts'
import { shareOf } from '../../admission/gates.ts'
import { notFound } from '../../http/problem.ts'
import type { Dependencies } from '../../operations/dependencies.ts'
import { implement } from '../../operations/implement.ts'
import { listOrders, readLines } from './order-rows.ts'
import { put } from './put.ts'

const POLL_MS = 50
/** The maximum number of requests of an organization that wait at once in this process. A further request does not wait. */
const MAX_WAITING = 100
const waiting = new Tally<string>()

/** Returns the lines of an order. Waits up to `waitMs` until a line has licenses. Throws NOT_FOUND if there is no line then. */
async function awaitLines(
  { dependencies, organizationId }: { dependencies: Dependencies; organizationId: string },
  place: { provider: string; orderId: string },
  waitMs: number,
): Promise<Order[]> {
  const { gates, readDb: db } = dependencies
  const share = shareOf({ kind: 'vendor', organizationId })
  const read = () => runInside(gates.reads, share, () => readLines({ db, organizationId }, place))
  const deadlineMs = performance.now() + waitMs
  let lines = await read()
  const isComplete = () => lines.some(({ licenses }) => licenses.length > 0)
  if (!isComplete() && waiting.of(organizationId) < MAX_WAITING) {
    waiting.add(organizationId, 1)
    try {
      while (!isComplete() && performance.now() < deadlineMs) {
        await sleep(POLL_MS)
        lines = await read()
      }
    } finally {
      waiting.add(organizationId, -1)
    }
  }
  if (lines.length === 0) throw notFound('order')
  return lines
}

const tag = { name: 'Orders', description: 'What shops have sold, with the licenses of each line.' }

export const orders = implement(tag, operations, {
  listOrders: { summary: 'List orders', handle: (call) => listOrders(call, call.query) },
  readOrder: {
    summary: 'Read an order',
    description: "For a success page: waits until the shop's event has arrived, and returns the keys.",
    detached: true,
    handle: async (call) => ({ lines: await awaitLines(call, call.params, 1_000 * Number(call.query.wait ?? 0)) }),
  },
  putOrder: {
    summary: 'Put a line of an order',
    description:
      'Creates the licenses of a paid line, or changes them as the payment changes. Repeating the request changes nothing, ' +
      'and so does a request with an earlier `occurredAt`.',
    errors: ['LICENSE_REVOKED', 'EXTERNAL_ID_EXISTS', 'VALIDATORS_OUTDATED'],
    handle: (call) => put(call, call.params, call.body),
  },
})
