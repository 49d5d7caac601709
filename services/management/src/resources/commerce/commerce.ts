/** Defines the endpoints of connections to shops and of their inboxes (docs/api.md#b4). */

import {
  commerce as operations,
  type Connection,
  type createConnection,
  type updateConnection,
} from '@keyward/contract/management/commerce'
import { orderState } from '@keyward/contract/management/orders'
import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'
import type { z } from 'zod'

import { audit, valuesBefore } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { differences } from '../../crud/differences.ts'
import { deleteRow, findRow, listRows, lockRow, type OwnedRows, readRow, updateRow } from '../../crud/owned-rows.ts'
import { ApiError } from '../../http/problem.ts'
import type { Keyring } from '../../keyring/keyring.ts'
import { implement } from '../../operations/implement.ts'
import { listEvents, receive, retryEvent } from './inbox.ts'
import { sealed } from './secrets.ts'

const MAX_CONNECTIONS = 20

const rows: OwnedRows<'commerceConnections', Connection> = {
  table: 'commerceConnections',
  type: 'connection',
  show: ({ id, name, shop, mode, states, unknownPrices, createdAt, updatedAt }) => ({
    id,
    name,
    shop,
    mode,
    states,
    unknownPrices,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }),
}

async function addConnection(
  context: WriteContext,
  keyring: Keyring,
  { secret, ...input }: z.output<typeof createConnection>,
): Promise<Connection> {
  const { db, organizationId } = context
  // The lock on the organization makes the count exact.
  await sql`select from organizations where id = ${organizationId} for no key update`.execute(db)
  const counted = await sql<{ count: number }>`
    select count(*)::integer as count from commerce_connections where organization_id = ${organizationId}`.execute(db)
  if ((counted.rows[0]?.count ?? 0) >= MAX_CONNECTIONS)
    throw new ApiError(
      'QUOTA_EXCEEDED',
      `An organization has at most ${MAX_CONNECTIONS} connections. Delete one first.`,
    )
  const id = uuidv7()
  const fields = {
    ...input,
    states: input.states ?? [...orderState.options],
    unknownPrices: input.unknownPrices ?? 'wait',
  } as const
  const row = await db
    .insertInto('commerceConnections')
    .values({ id, organizationId, ...fields, ...sealed(keyring, { id, organizationId }, secret) })
    .returningAll()
    .executeTakeFirstOrThrow()
  await audit(context, { action: 'connection.created', resourceType: 'connection', resourceId: id, changes: fields })
  return rows.show(row)
}

async function changeConnection(
  context: WriteContext,
  keyring: Keyring,
  id: string,
  { secret, ...input }: z.output<typeof updateConnection>,
): Promise<Connection> {
  const before = await lockRow(rows, context, id)
  const changed = differences(before, input)
  if (changed === null && secret === undefined) return rows.show(before)
  const columns = secret === undefined ? {} : sealed(keyring, before, secret)
  const row = await updateRow(rows, context, id, { ...changed, ...columns, updatedAt: new Date() })
  await audit(context, {
    action: 'connection.changed',
    resourceType: 'connection',
    resourceId: id,
    changes: { ...input, ...(secret !== undefined && { secretReplaced: true }) },
    before: valuesBefore(before, changed ?? {}),
  })
  return rows.show(row)
}

const tag = { name: 'Shops', description: 'Connections to shops, whose events become orders.' }

export const commerce = implement(tag, operations, {
  listConnections: { summary: 'List connections', handle: (call) => listRows(rows, call, call.query) },
  createConnection: {
    summary: 'Create a connection',
    description: 'An organization has at most 20 connections.',
    handle: (call) => addConnection(call, call.dependencies.keyring, call.body),
  },
  readConnection: { summary: 'Read a connection', handle: (call) => readRow(rows, call, call.params.id) },
  updateConnection: {
    summary: 'Change a connection',
    description: 'A new `secret` replaces the former one at once.',
    handle: (call) => changeConnection(call, call.dependencies.keyring, call.params.id, call.body),
  },
  deleteConnection: {
    summary: 'Delete a connection',
    description: 'Also deletes its inbox. Orders stay.',
    handle: (call) => deleteRow(rows, call, call.params.id, { audited: rows.show }),
  },
  receiveShopEvents: {
    summary: 'Receive events of a shop',
    description:
      'The URL to enter in the shop. The signature of the body authenticates the request. Events are stored and then handled, and a ' +
      'repeated event is not stored again.',
    errors: ['ORGANIZATION_SUSPENDED', 'QUOTA_EXCEEDED'],
    detached: true,
    handle: ({ dependencies, params, received }) => receive(dependencies, params.id, received),
  },
  listShopEvents: {
    summary: 'List the events of a shop',
    description: 'Returns the events of the last 30 days.',
    handle: async (call) => {
      await findRow(rows, call, call.params.id)
      return listEvents(call, call.params.id, call.query)
    },
  },
  retryShopEvent: {
    summary: 'Handle an event of a shop again',
    description: 'An event that has been handled is not handled again.',
    handle: async (call) => {
      await findRow(rows, call, call.params.id)
      return retryEvent(call, call.params.id, call.params.eventId)
    },
  },
})
