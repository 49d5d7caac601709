/** The commands for API keys, the credentials that apps contain: `api-key list`, `api-key create`, `api-key revoke`. */

import { apiKey, createdApiKey } from '@keyward/contract'
import type { Command } from 'commander'
import { z } from 'zod'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { fetchList, listFlags, noContent, printList, withLimit } from './lists.ts'

const createFlags = z.object({ expires: z.string().optional(), product: z.string().optional() })

export function addApiKeyCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('api-key').description('API keys: credentials for apps')
  group
    .command('create')
    .description('create an API key and show its secret once')
    .argument('<name>', 'the purpose of the key')
    .option('--product <id>', 'the product whose licenses the key can check (default: all products)')
    .option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now (default: never)')
    .action(async (name: string, flags: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const { expires, product } = createFlags.parse(flags)
      const expiresAt = expires === undefined ? {} : { expiresAt: parseMoment(expires, context.nowMs()) }
      const { data } = await api.call(
        {
          method: 'POST',
          path: '/api-keys',
          body: { name, ...expiresAt, ...(product === undefined ? {} : { productId: product }) },
        },
        createdApiKey,
      )
      const { id, secret = null } = data
      const bound = data.productId === null ? {} : { product: data.productId }
      output.result(data, describe({ id, name, secret, ...bound, expires: data.expiresAt ?? 'never' }))
      output.note('\nStore the secret now. It is not shown again.')
    })
  withLimit(group.command('list').description('list API keys, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const list = await fetchList(session.api, '/api-keys', apiKey, listFlags.parse(flags).limit)
      printList(session, list, ['ID', 'NAME', 'PREFIX', 'LAST USED', 'EXPIRES', 'PRODUCT'], (one) => [
        one.id,
        one.name,
        one.prefix,
        one.lastUsedAt ?? 'never',
        one.expiresAt ?? 'never',
        one.productId ?? 'any',
      ])
    },
  )
  group
    .command('revoke')
    .description('revoke an API key; checks with the key fail')
    .argument('<id>', 'the id of the API key')
    .action(async (id: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      await api.call({ method: 'DELETE', path: `/api-keys/${encodeURIComponent(id)}` }, noContent)
      output.result({ id, revoked: true }, `Revoked the API key ${id}.`)
    })
}
