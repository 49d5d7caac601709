import { license } from '@keyward/contract'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { parseMoment } from '../times.ts'

const licenseStatus = license.shape.status
const filterFlags = z.object({
  product: z.string().optional(),
  customer: z.string().optional(),
  template: z.string().optional(),
  externalId: z.string().optional(),
  email: z.string().optional(),
  keyPrefix: z.string().optional(),
  metadata: z.string().optional(),
  expiresAfter: z.string().optional(),
  expiresBefore: z.string().optional(),
  status: licenseStatus.optional(),
})

/** Adds the options of `filterOf` to a command. */
export function withFilter(command: CliCommand): CliCommand {
  return command
    .option('--product <id>', 'only licenses of this product')
    .option('--customer <id>', 'only licenses of this customer')
    .option('--template <id>', 'only licenses of this template')
    .option('--external-id <id>', 'only the license with this id of your own system')
    .option('--email <address>', 'only licenses of customers with this e-mail address')
    .option('--metadata <name:value>', 'only licenses whose metadata has this member')
    .option('--key-prefix <text>', 'only licenses whose key begins with this text, in any case')
    .option(
      '--expires-after <when>',
      'only licenses that expire at this time or later: a date, or 30d, 12h, 1y from now',
    )
    .option('--expires-before <when>', 'only licenses that expire before this time')
    .addOption(new Option('--status <status>', 'only licenses with this status').choices(licenseStatus.options))
}

/** Returns the filter for the options of `withFilter`. Conditions that are not given are absent. */
export function filterOf(flags: unknown, nowMs: number) {
  const { product, customer, template, expiresAfter, expiresBefore, ...others } = filterFlags.parse(flags)
  return {
    ...others,
    ...(product !== undefined && { productId: product }),
    ...(customer !== undefined && { customerId: customer }),
    ...(template !== undefined && { templateId: template }),
    ...(expiresAfter !== undefined && { expiresAfter: parseMoment(expiresAfter, nowMs) }),
    ...(expiresBefore !== undefined && { expiresBefore: parseMoment(expiresBefore, nowMs) }),
  }
}
