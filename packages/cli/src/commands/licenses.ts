import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'

import { license, licenseFile, policyType } from '@keyward/contract'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { z } from 'zod'

import type { Call } from '../api.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { addDeletion } from './deletion.ts'
import { entitlementsOf, withEntitlements } from './entitlements.ts'
import { describeLicense, expiryOf, findLicense } from './license-format.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'
import { describeApplied, waitOf, withWait } from './wait.ts'

const licenseStatus = license.shape.status

type Open = (command: Command) => Session

export function addLicenseCommands(parent: Command, open: Open): void {
  const group = parent.command('license').description('licenses')
  addCreate(group, open)
  group
    .command('show')
    .description('show a license')
    .argument('<license>', 'the id or key of the license')
    .action(async (idOrKey: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const found = await findLicense(api, idOrKey)
      output.result(found, describeLicense(found))
    })
  addList(group, open)
  addAction(group, open, 'suspend', 'suspend a license; its checks are rejected until "license reinstate"')
  addAction(group, open, 'reinstate', 'end the suspension of a license')
  addAction(group, open, 'revoke', 'revoke a license permanently')
  addRenew(group, open)
  addLimits(group, open)
  addReplaceKey(group, open)
  addEntitle(group, open)
  addFile(group, open)
  addDeletion(group, open, {
    verb: 'delete',
    noun: 'a license',
    path: '/licenses',
    consequence: 'its machines and rules are deleted too',
    find: async (api, idOrKey) => (await findLicense(api, idOrKey)).id,
  })
}

/** Adds a command that changes the status of a license. */
function addAction(group: Command, open: Open, action: string, description: string): void {
  withWait(group.command(action).description(description))
    .argument('<license>', 'the id or key of the license')
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const session = open(command)
      const { id } = await findLicense(session.api, idOrKey)
      await change(session, { method: 'POST', path: `/licenses/${id}/${action}`, ...waitOf(flags) })
    })
}

function addRenew(group: Command, open: Open): void {
  withWait(group.command('renew').description('set a new expiry; an expired license is active again'))
    .argument('<license>', 'the id or key of the license')
    .requiredOption('--expires <when>', 'the new expiry: a date, or 30d, 12h, 1y from now')
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const session = open(command)
      const { expires } = z.object({ expires: z.string() }).parse(flags)
      const expiresAt = parseMoment(expires, session.context.nowMs())
      const { id } = await findLicense(session.api, idOrKey)
      await change(session, { method: 'POST', path: `/licenses/${id}/renew`, body: { expiresAt }, ...waitOf(flags) })
    })
}

const limitFlag = z.union([z.int(), z.literal('none').transform(() => null)]).optional()
const limitFlags = z.object({ maxMachines: limitFlag, leaseSeconds: limitFlag, maxReleases: limitFlag })

function addLimits(group: Command, open: Open): void {
  withWait(group.command('limits').description('change the limits of a license; options that are not set keep theirs'))
    .argument('<license>', 'the id or key of the license')
    .option('--max-machines <number>', 'the maximum number of machines, or none', numberOrNone)
    .option(
      '--lease-seconds <seconds>',
      'the time for which a machine holds its slot without a check, or none',
      numberOrNone,
    )
    .option('--max-releases <number>', 'the number of slots that apps may release in 30 days, or none', numberOrNone)
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const session = open(command)
      const policy = limitFlags.parse(flags)
      if (Object.keys(policy).length === 0)
        throw new Failure(EXIT.usage, 'Set --max-machines, --lease-seconds or --max-releases')
      const { id } = await findLicense(session.api, idOrKey)
      await change(session, { method: 'PATCH', path: `/licenses/${id}`, body: { policy }, ...waitOf(flags) })
    })
}

function addReplaceKey(group: Command, open: Open): void {
  withWait(
    group.command('replace-key').description('give a license another key; checks with the old key return NOT_FOUND'),
  )
    .argument('<license>', 'the id or key of the license')
    .option('--key <key>', 'a key of your own (default: a generated one)')
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const session = open(command)
      const body = z.object({ key: z.string().optional() }).parse(flags)
      const { id } = await findLicense(session.api, idOrKey)
      await change(session, { method: 'POST', path: `/licenses/${id}/replace-key`, body, ...waitOf(flags) })
    })
}

function addEntitle(group: Command, open: Open): void {
  const entitle = group.command('entitle').description("replace the overrides of the product's entitlements")
  withWait(
    withEntitlements(entitle, 'an override, or null to remove a default of the product; none without this option'),
  )
    .argument('<license>', 'the id or key of the license')
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const session = open(command)
      const body = { entitlements: {}, ...entitlementsOf(flags) }
      const { id } = await findLicense(session.api, idOrKey)
      await change(session, { method: 'PATCH', path: `/licenses/${id}`, body, ...waitOf(flags) })
    })
}

/** Sends a change of a license and prints the changed license. */
async function change({ api, output }: Session, call: Call): Promise<void> {
  const { data, appliedBy } = await api.call(call, license)
  const applied = describeApplied(appliedBy)
  output.result({ ...data, appliedBy }, [describeLicense(data), applied].filter((part) => part !== null).join('\n\n'))
}

function addList(group: Command, open: Open): void {
  withLimit(group.command('list').description('list licenses, newest first'))
    .option('--product <id>', 'only licenses of this product')
    .option('--customer <id>', 'only licenses of this customer')
    .option('--email <address>', 'only licenses of customers with this e-mail address')
    .option(
      '--expires-after <when>',
      'only licenses that expire at this time or later: a date, or 30d, 12h, 1y from now',
    )
    .option('--expires-before <when>', 'only licenses that expire before this time')
    .addOption(
      new Option('--sort <field>', 'newest first, or those first that expire first')
        .choices(['createdAt', 'expiresAt'])
        .default('createdAt'),
    )
    .addOption(new Option('--status <status>', 'only licenses with this status').choices(licenseStatus.options))
    .action(async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, product: productId, customer: customerId, ...filters } = filterFlags.parse(flags)
      const time = (given?: string) => given && parseMoment(given, session.context.nowMs())
      const list = await fetchList(session.api, '/licenses', license, limit, {
        productId,
        customerId,
        ...filters,
        expiresAfter: time(filters.expiresAfter),
        expiresBefore: time(filters.expiresBefore),
      })
      printList(session, list, ['KEY', 'STATUS', 'MACHINES', 'EXPIRES', 'ID'], (one) => [
        one.key,
        one.status,
        `${one.machines.used} of ${one.machines.max ?? 'any number'}`,
        expiryOf(one.policy),
        one.id,
      ])
    })
}

function addFile(group: Command, open: Open): void {
  group
    .command('file')
    .description('download the offline license file for a machine without network access')
    .argument('<license>', 'the id or key of the license')
    .option('--out <file>', 'the file to write (default: standard output)')
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const { out } = z.object({ out: z.string().optional() }).parse(flags)
      const { id } = await findLicense(api, idOrKey)
      const { data: file } = await api.call({ method: 'GET', path: `/licenses/${id}/file`, text: true }, licenseFile)
      if (out === undefined) {
        output.result({ licenseId: id, file }, file)
        return
      }
      const path = resolve(context.folder, out)
      await writeFile(path, file).catch((error: unknown) => {
        throw new Failure(
          EXIT.usage,
          `${path} cannot be written: ${error instanceof Error ? error.message : 'unknown'}`,
        )
      })
      output.result({ licenseId: id, path }, `Wrote ${path}.`)
    })
}

const filterFlags = listFlags.extend({
  product: z.string().optional(),
  customer: z.string().optional(),
  email: z.string().optional(),
  expiresAfter: z.string().optional(),
  expiresBefore: z.string().optional(),
  sort: z.string(),
  status: licenseStatus.optional(),
})

const createFlags = z.object({
  product: z.string().optional(),
  customer: z.string().optional(),
  type: policyType.optional(),
  expires: z.string().optional(),
  durationDays: z.int().optional(),
  maxReleases: z.int().optional(),
  leaseSeconds: z.int().optional(),
  maxMachines: z.int().optional(),
  key: z.string().optional(),
})

function addCreate(group: Command, open: Open): void {
  const create = group.command('create')
  withEntitlements(create, "an override of the product's entitlements, or null to remove a default")
    .description('create a license, which is perpetual without --expires and --duration-days')
    .option('--product <id>', "the product (default with the demo's token: the demo's product)")
    .option('--customer <id>', "the customer (default with the demo's token: the demo's customer)")
    .addOption(new Option('--type <type>', 'the type of the license').choices(policyType.options))
    .option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now')
    .option(
      '--duration-days <days>',
      'the length of a term that starts with the first VALID check, instead of --expires',
      wholeNumber,
    )
    .option('--max-machines <number>', 'the maximum number of machines (default: no limit)', wholeNumber)
    .option(
      '--lease-seconds <seconds>',
      'the time for which a machine holds its slot without a check (default: no end)',
      wholeNumber,
    )
    .option(
      '--max-releases <number>',
      'the number of slots that apps may release in 30 days (default: no limit)',
      wholeNumber,
    )
    .option('--key <key>', 'a key of your own (default: a generated one)')
    .action(async (given: unknown, command: Command) => {
      const { api, output, connection, context } = open(command)
      const flags = createFlags.parse(given)
      const productId = flags.product ?? connection.demo?.productId
      const customerId = flags.customer ?? connection.demo?.customerId
      if (productId === undefined || customerId === undefined)
        throw new Failure(EXIT.usage, 'A license requires a product and a customer. Set --product and --customer')
      const expiresAt = flags.expires === undefined ? null : parseMoment(flags.expires, context.nowMs())
      const durationDays = flags.durationDays ?? null
      const type = flags.type ?? (expiresAt === null && durationDays === null ? 'PERPETUAL' : 'SUBSCRIPTION')
      const { maxMachines = null, maxReleases = null, leaseSeconds = null } = flags
      const policy = { type, maxMachines, expiresAt, durationDays, maxReleases, leaseSeconds }
      const body = {
        productId,
        customerId,
        policy,
        ...(flags.key === undefined ? {} : { key: flags.key }),
        ...entitlementsOf(given),
      }
      const { data } = await api.call({ method: 'POST', path: '/licenses', body }, license)
      output.result(data, describeLicense(data))
    })
}

function wholeNumber(text: string): number {
  if (!/^\d{1,10}$/.test(text)) throw new InvalidArgumentError('It must be a whole number.')
  return Number(text)
}

function numberOrNone(text: string): number | 'none' {
  return text === 'none' ? text : wholeNumber(text)
}
