import { type Order, order, orders } from '@keyward/contract/management/orders'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { parseMoment } from '../times.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { wholeNumber } from './terms.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const { state } = order.shape

export function addOrderCommands(parent: CliCommand): void {
  const group = parent.command('order').description('orders of shops, with their licenses')
  withLimit(group.command('list').description('list the lines of orders, newest first'))
    .option('--provider <name>', 'only orders of this shop')
    .addOption(new Option('--state <state>', 'only lines with this state').choices(state.options))
    .run(async (session, flags) => {
      const { limit, ...query } = listFlags
        .extend({ provider: z.string().optional(), state: state.optional() })
        .parse(flags)
      printList(session, await readList(session.api, orders.listOrders, { query }, limit), rowOf)
    })
  group
    .command('show')
    .description('show the lines of an order with their keys')
    .argument('<provider>', 'the shop')
    .argument('<order>', 'the id of the order in the shop')
    .run(async (session, _flags, provider: string, orderId: string) => {
      const { data } = await session.api.call(orders.readOrder, { params: { provider, orderId } })
      printList(session, { items: data.lines, more: false }, rowOf)
    })
  const put = group.command('put').description('put a line of an order, as a shop does; repeating it changes nothing')
  withWait(put)
    .argument('<provider>', 'the shop')
    .argument('<order>', 'the id of the order in the shop')
    .argument('<line>', 'the line of the order')
    .requiredOption('--email <address>', 'the e-mail address of the buyer')
    .addOption(new Option('--state <state>', 'the state of the payment').choices(state.options).makeOptionMandatory())
    .option('--template <id>', 'the template that was sold')
    .option('--price <id>', 'the price that was sold, instead of --template')
    .option('--quantity <number>', 'the number that was sold', wholeNumber)
    .option('--paid-through <when>', 'the time until which the line is paid: a date, or 30d, 12h, 1y from now')
    .run(async (session, given, provider: string, orderId: string, line: string) => {
      const flags = putFlags.parse(given)
      const { email, template: templateId, price: priceId, paidThrough } = flags
      const body = {
        ...(templateId !== undefined && { templateId }),
        ...(priceId !== undefined && { priceId }),
        ...(flags.quantity !== undefined && { quantity: flags.quantity }),
        ...(paidThrough !== undefined && { paidThrough: parseMoment(paidThrough, session.context.nowMs()) }),
        customer: { email },
        state: flags.state,
      }
      const params = { provider, orderId, line }
      const changed = await session.api.call(orders.putOrder, { params, body }, waitOf(given))
      printChange(session, changed, keysOf(changed.data))
    })
}

const putFlags = z.object({
  email: z.string(),
  state,
  template: z.string().optional(),
  price: z.string().optional(),
  quantity: z.int().optional(),
  paidThrough: z.string().optional(),
})

function keysOf({ licenses }: Order): string {
  return licenses.length === 0 ? 'No licenses.' : licenses.map(({ key, status }) => `${key}  ${status}`).join('\n')
}

function rowOf(one: Order): Record<string, string> {
  return {
    SHOP: one.provider,
    ORDER: one.orderId,
    LINE: one.line,
    STATE: one.state,
    KEYS: one.licenses.map(({ key }) => key).join(', '),
  }
}
