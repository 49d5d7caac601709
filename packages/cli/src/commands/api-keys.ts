/** The commands for API keys, the credentials that apps contain: `api-key list`, `api-key create`, `api-key revoke`. */

import { apiKeys } from '@keyward/contract'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { describe } from '../output.ts'
import { expiryOf, printSecret, withExpiry } from './credential-options.ts'
import { addDeletion } from './deletion.ts'
import { addList } from './lists.ts'
import { waitOf, withWait } from './wait.ts'

export function addApiKeyCommands(parent: CliCommand): void {
  const group = parent.command('api-key').description('API keys: credentials for apps')
  const create = group.command('create').description('create an API key and show its secret once')
  withWait(withExpiry(create))
    .argument('<name>', 'the purpose of the key')
    .option('--product <id>', 'the product whose licenses the key can check (default: all products)')
    .run(async (session, flags, name: string) => {
      const { product: productId } = z.object({ product: z.string().optional() }).parse(flags)
      const body = { name, productId, ...expiryOf(flags, session) }
      const created = await session.api.call(apiKeys.createApiKey, { body }, waitOf(flags))
      const { id, secret = null, productId: bound, expiresAt } = created.data
      const product = bound === null ? {} : { product: bound }
      printSecret(session, created, describe({ id, name, secret, ...product, expires: expiresAt ?? 'never' }))
    })
  addList(group, apiKeys.listApiKeys, 'API keys', (one) => ({
    ID: one.id,
    NAME: one.name,
    PREFIX: one.prefix,
    'LAST USED': one.lastUsedAt ?? 'never',
    EXPIRES: one.expiresAt ?? 'never',
    PRODUCT: one.productId ?? 'any',
  }))
  const consequence = 'checks with the key fail'
  addDeletion(group, { verb: 'revoke', noun: 'an API key', operation: apiKeys.revokeApiKey, consequence })
}
