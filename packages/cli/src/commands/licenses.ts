/** The commands for licenses. They name a license by its id or by its key. */
import { license, policyType } from '@keyward/contract'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { describeApplied, describeLicense, findLicense } from './license-format.ts'

type Open = (command: Command) => Session

export function addLicenseCommands(parent: Command, open: Open): void {
  const group = parent.command('license').description('licenses: create, show, revoke')
  addCreate(group, open)
  group
    .command('show')
    .description('show a license')
    .argument('<license>', 'its id or its key')
    .action(async (idOrKey: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const found = await findLicense(api, idOrKey)
      output.result(found, describeLicense(found))
    })
  group
    .command('revoke')
    .description('revoke a license, which is final')
    .argument('<license>', 'its id or its key')
    .option('--wait <seconds>', 'how long to wait until every validator has applied it (0 to 10)', wholeSeconds, 5)
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { wait } = z.object({ wait: z.int() }).parse(flags)
      const { id } = await findLicense(api, idOrKey)
      const waitS = wait === 0 ? {} : { waitS: wait }
      const call = { method: 'POST', path: `/licenses/${id}/revoke`, ...waitS } as const
      const { data, appliedBy } = await api.call(call, license)
      const applied = describeApplied(appliedBy)
      output.result(
        { ...data, appliedBy },
        [describeLicense(data), applied].filter((part) => part !== null).join('\n\n'),
      )
    })
}

const createFlags = z.object({
  product: z.string().optional(),
  customer: z.string().optional(),
  type: policyType.optional(),
  expires: z.string().optional(),
  maxMachines: z.int().optional(),
  key: z.string().optional(),
})

function addCreate(group: Command, open: Open): void {
  group
    .command('create')
    .description('create a license; without --expires it is perpetual')
    .option('--product <id>', "the product (default: the demo's, with its token)")
    .option('--customer <id>', "the customer (default: the demo's, with its token)")
    .addOption(new Option('--type <type>', 'the type of the license').choices(policyType.options))
    .option('--expires <when>', 'a date, or 30d, 12h, 1y from now')
    .option('--max-machines <number>', 'how many machines may use it (default: any number)', wholeNumber)
    .option('--key <key>', 'a key of your own (default: a generated one)')
    .action(async (given: unknown, command: Command) => {
      const { api, output, connection, context } = open(command)
      const flags = createFlags.parse(given)
      const productId = flags.product ?? connection.demo?.productId
      const customerId = flags.customer ?? connection.demo?.customerId
      if (productId === undefined || customerId === undefined)
        throw new Failure(EXIT.usage, 'A license needs a product and a customer; give --product and --customer')
      const expiresAt = flags.expires === undefined ? null : parseMoment(flags.expires, context.nowMs())
      const type = flags.type ?? (expiresAt === null ? 'PERPETUAL' : 'SUBSCRIPTION')
      const policy = { type, maxMachines: flags.maxMachines ?? null, expiresAt }
      const body = { productId, customerId, policy, ...(flags.key === undefined ? {} : { key: flags.key }) }
      const { data } = await api.call({ method: 'POST', path: '/licenses', body }, license)
      output.result(data, describeLicense(data))
    })
}

function wholeNumber(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function wholeSeconds(text: string): number {
  const value = /^\d{1,2}$/.test(text) ? Number(text) : 11
  if (value > 10) throw new InvalidArgumentError('It must be a whole number from 0 to 10.')
  return value
}
