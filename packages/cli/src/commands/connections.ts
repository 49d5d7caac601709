import { readFile } from 'node:fs/promises'

import { commerce, connection, shop, shopEvent } from '@keyward/contract/management/commerce'
import { urlOf } from '@keyward/contract/operations'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { addDeletion } from './deletion.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'

const { mode } = connection.shape
const { state } = shopEvent.shape

export function addConnectionCommands(parent: CliCommand): void {
  const group = parent.command('connection').description('connections to shops, and the events that shops have sent')
  withLimit(group.command('list').description('list connections, newest first')).run(async (session, flags) => {
    const { limit } = listFlags.parse(flags)
    printList(session, await readList(session.api, commerce.listConnections, {}, limit), (one) => ({
      ID: one.id,
      NAME: one.name,
      SHOP: one.shop,
      MODE: one.mode,
      STATES: one.states.join(', '),
    }))
  })
  group
    .command('create')
    .description('connect a shop; enter the printed path in the shop')
    .argument('<name>', 'the name of the connection')
    .argument('<shop>', shop.options.join(', '))
    .addOption(new Option('--mode <mode>', 'the events to accept').choices(mode.options).default('live'))
    .requiredOption('--secret-file <path>', 'the file with the secret with which the shop signs its events')
    .run(async (session, flags, name: string, of: string) => {
      const given = createFlags.parse(flags)
      const secret = (await readFile(given.secretFile, 'utf8')).trim()
      const body = { name, shop: shop.parse(of), mode: given.mode, secret }
      const { data } = await session.api.call(commerce.createConnection, { body })
      const path = urlOf(commerce.receiveShopEvents, { params: { id: data.id } })
      session.output.result(data, `${data.id}\n\nEnter this path in the shop: ${path}`)
    })
  addDeletion(group, {
    verb: 'delete',
    noun: 'a connection',
    operation: commerce.deleteConnection,
    consequence: 'its inbox is deleted too, and orders stay',
  })
  withLimit(group.command('events').description('list the events of a connection, newest first'))
    .argument('<id>', 'the id of the connection')
    .addOption(new Option('--state <state>', 'only events with this state').choices(state.options))
    .run(async (session, flags, id: string) => {
      const { limit, ...query } = listFlags.extend({ state: state.optional() }).parse(flags)
      const list = await readList(session.api, commerce.listShopEvents, { params: { id }, query }, limit)
      printList(session, list, (one) => ({
        ID: one.id,
        TYPE: one.type,
        STATE: one.state,
        ORDER: one.orderId ?? '–',
        ERROR: one.error ?? '',
      }))
    })
  group
    .command('retry')
    .description('handle an event of a shop again')
    .argument('<id>', 'the id of the connection')
    .argument('<event>', 'the id of the event in the inbox')
    .run(async (session, _flags, id: string, eventId: string) => {
      const { data } = await session.api.call(commerce.retryShopEvent, { params: { id, eventId } })
      session.output.result(data, `The event is attempted again. Its state is ${data.state}.`)
    })
}

const createFlags = z.object({ mode, secretFile: z.string() })
