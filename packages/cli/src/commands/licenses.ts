import { writeFile } from 'node:fs/promises'
import { resolve } from 'node:path'

import { type License, licenseFiles, licenses } from '@keyward/contract'
import { parseRequestCode } from '@keyward/license-file'
import { Option } from 'commander'
import { z } from 'zod'

import type { Api, ApiResponse, CallOptions } from '../api.ts'
import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { addDeletion } from './deletion.ts'
import { describeEntitlements, entitlementsOf, withEntitlements } from './entitlements.ts'
import { isExported, withExport } from './export.ts'
import { filterOf, withFilter } from './license-filter.ts'
import { describeLicense, expiryOf, findLicense } from './license-format.ts'
import { addLicenseImport } from './license-import.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { limitsOf, termsOf, wholeNumber, withLimits, withTerms } from './terms.ts'
import { versionOf, withVersion } from './version.ts'
import { printChange, waitOf, withWait } from './wait.ts'

export function addLicenseCommands(parent: CliCommand): void {
  const group = parent.command('license').description('licenses')
  addCreate(group)
  group
    .command('show')
    .description('show a license')
    .argument('<license>', 'the id or key of the license')
    .run(async ({ api, output }, _flags, idOrKey: string) => {
      const found = await findLicense(api, idOrKey)
      output.result(found, describeLicense(found))
    })
  addList(group)
  addLicenseImport(group)
  addActions(group)
  addRenew(group)
  addExtend(group)
  addLimits(group)
  addMove(group)
  addReplaceKey(group)
  addEntitle(group)
  addEntitlements(group)
  addFile(group)
  addDeletion(group, {
    verb: 'delete',
    noun: 'a license',
    operation: licenses.deleteLicense,
    consequence: 'its machines and rules are deleted too',
    find: async (api, idOrKey) => (await findLicense(api, idOrKey)).id,
  })
}

/** Parses the flags of a command. Returns the function that changes the license with the id. */
type Prepare = (
  flags: unknown,
  session: Session,
) => (params: { id: string }, options: CallOptions) => Promise<ApiResponse<License>>

/** Completes a command that changes a license and prints the changed license. */
function addChange(command: CliCommand, prepare: Prepare): void {
  withVersion(withWait(command))
    .argument('<license>', 'the id or key of the license')
    .run(async (session, flags, idOrKey: string) => {
      const send = prepare(flags, session)
      const found = await findLicense(session.api, idOrKey)
      const changed = await send({ id: found.id }, { ...waitOf(flags), ...versionOf(flags, found) })
      printChange(session, changed, describeLicense(changed.data))
    })
}

function addActions(group: CliCommand): void {
  const { suspendLicense, reinstateLicense, revokeLicense } = licenses
  for (const [name, operation, description] of [
    ['suspend', suspendLicense, 'suspend a license; its checks are rejected until "license reinstate"'],
    ['revoke', revokeLicense, 'revoke a license permanently'],
  ] as const) {
    const command = group.command(name).description(description)
    addChange(command.option('--reason <text>', 'the reason, for the audit log and the event'), (flags, { api }) => {
      const body = z.object({ reason: z.string().optional() }).parse(flags)
      return (params, options) => api.call(operation, { params, body }, options)
    })
  }
  addChange(
    group.command('reinstate').description('end the suspension of a license'),
    (_flags, { api }) =>
      (params, options) =>
        api.call(reinstateLicense, { params }, options),
  )
}

function addRenew(group: CliCommand): void {
  const renew = group.command('renew').description('set a new expiry; an expired license is active again')
  renew
    .requiredOption('--expires <when>', 'the new expiry: a date, or 30d, 12h, 1y from now')
    .option('--allow-earlier', 'also accept an expiry that is earlier than the current one')
  addChange(renew, (flags, { api, context }) => {
    const { expires, allowEarlier } = z
      .object({ expires: z.string(), allowEarlier: z.boolean().default(false) })
      .parse(flags)
    const body = { expiresAt: parseMoment(expires, context.nowMs()), allowEarlier }
    return (params, options) => api.call(licenses.renewLicense, { params, body }, options)
  })
}

function addExtend(group: CliCommand): void {
  const extend = group.command('extend').description('add days to the expiry, or to the current time after the end')
  extend.requiredOption('--days <days>', 'the number of days to add', wholeNumber)
  addChange(extend, (flags, { api }) => {
    const body = z.object({ days: z.int() }).parse(flags)
    return (params, options) => api.call(licenses.extendLicense, { params, body }, options)
  })
}

function addLimits(group: CliCommand): void {
  const limits = group
    .command('limits')
    .description('change the limits of a license; options that are not set keep theirs')
  withLimits(limits)
  addChange(limits, (flags, { api }) => {
    const policy = limitsOf(flags)
    if (Object.keys(policy).length === 0)
      throw new Failure(EXIT.usage, 'Set --max-machines, --lease-seconds, --max-releases, --grace-days or --file-days')
    return (params, options) => api.call(licenses.updateLicense, { params, body: { policy } }, options)
  })
}

function addMove(group: CliCommand): void {
  const move = group
    .command('move')
    .description('move a license to another template; values that equal the former template change')
    .requiredOption('--template <id>', 'the id of a template of the product, or none')
  addChange(move, (flags, { api }) => {
    const { template } = z.object({ template: z.string() }).parse(flags)
    const body = { templateId: template === 'none' ? null : template }
    return (params, options) => api.call(licenses.updateLicense, { params, body }, options)
  })
}

function addReplaceKey(group: CliCommand): void {
  const replace = group
    .command('replace-key')
    .description('give a license another key; checks with the old key return NOT_FOUND')
    .option('--key <key>', 'a key of your own (default: a generated one)')
  addChange(replace, (flags, { api }) => {
    const body = z.object({ key: z.string().optional() }).parse(flags)
    return (params, options) => api.call(licenses.replaceLicenseKey, { params, body }, options)
  })
}

function addEntitle(group: CliCommand): void {
  const entitle = group.command('entitle').description("replace the overrides of the product's entitlements")
  withEntitlements(entitle, 'an override, or null to remove a default of the product; none without this option')
  addChange(entitle, (flags, { api }) => {
    const body = { entitlements: {}, ...entitlementsOf(flags) }
    return (params, options) => api.call(licenses.updateLicense, { params, body }, options)
  })
}

function addEntitlements(group: CliCommand): void {
  group
    .command('entitlements')
    .description('show the entitlements that apps receive: those of the product and the overrides of the license')
    .argument('<license>', 'the id or key of the license')
    .run(async ({ api, output }, _flags, idOrKey: string) => {
      const { id } = await findLicense(api, idOrKey)
      const { data } = await api.call(licenses.readLicenseEntitlements, { params: { id } })
      output.result(data, describeEntitlements(data.effective).entitlements ?? 'None.')
    })
}

function addList(group: CliCommand): void {
  withExport(withFilter(withLimit(group.command('list').description('list licenses, newest first'))))
    .addOption(
      new Option('--sort <field>', 'newest first, or those first that expire first')
        .choices(['createdAt', 'expiresAt'])
        .default('createdAt'),
    )
    .run(async (session, flags) => {
      const { limit, sort } = listFlags.extend({ sort: z.string() }).parse(flags)
      const query = filterOf(flags, session.context.nowMs())
      if (await isExported(session, flags, licenses.exportLicenses, query)) return
      const list = await readList(session.api, licenses.listLicenses, { query: { ...query, sort } }, limit)
      printList(session, list, (one) => ({
        KEY: one.key,
        STATUS: one.status,
        MACHINES: `${one.machines.used} of ${one.machines.max ?? 'any number'}`,
        EXPIRES: expiryOf(one.policy),
        ID: one.id,
      }))
    })
}

const fileFlags = z.object({
  out: z.string().optional(),
  machine: z.string().optional(),
  hostname: z.string().optional(),
  request: z.string().optional(),
  days: z.int().optional(),
})

/** Returns the license of a file, and the body of the request if the file is for one machine. Throws Failure for contradicting options. */
async function fileTarget(api: Api, flags: z.output<typeof fileFlags>, idOrKey: string | undefined) {
  const { machine, request, days, hostname } = flags
  const failure = (message: string) => new Failure(EXIT.usage, message)
  if (request === undefined) {
    if (idOrKey === undefined) throw failure('Name the license, or give the code of the machine with --request.')
    const { id } = await findLicense(api, idOrKey)
    if (machine !== undefined) return { id, body: { machineId: machine, hostname, days } }
    if (days !== undefined || hostname !== undefined)
      throw failure('--days and --hostname require --machine or --request.')
    return { id, body: null }
  }
  if (idOrKey !== undefined || machine !== undefined)
    throw failure('--request names the license and the machine. Omit the license and --machine.')
  const requested = await parseRequestCode(request)
  if (requested === null) throw failure('The value of --request is no complete request code. A code begins with KWR1.')
  const { licenseKey, machineId } = requested
  const { id } = await findLicense(api, licenseKey)
  return { id, body: { machineId, hostname: hostname ?? requested.hostname, days } }
}

function addFile(group: CliCommand): void {
  group
    .command('file')
    .description('download an offline license file')
    .argument('[license]', 'the id or key of the license; omit it with --request')
    .option('--out <file>', 'the file to write (default: standard output)')
    .option('--machine <id>', 'issue a file that only this machine can use, and that holds a slot until it ends')
    .option('--hostname <name>', 'a name for the machine')
    .option('--request <code>', 'issue the file for the machine that shows this request code')
    .option('--days <days>', 'the lifetime of a file for one machine (default: that of all files)', wholeNumber)
    .run(async ({ api, output, context }, given, idOrKey?: string) => {
      const flags = fileFlags.parse(given)
      const { id, body } = await fileTarget(api, flags, idOrKey)
      const params = { id }
      const { data: file } =
        body === null
          ? await api.call(licenseFiles.downloadLicenseFile, { params })
          : await api.call(licenseFiles.issueMachineFile, { params, body })
      if (flags.out === undefined) {
        output.result({ licenseId: id, file }, file)
        return
      }
      const path = resolve(context.folder, flags.out)
      await writeFile(path, file).catch((error: unknown) => {
        throw new Failure(
          EXIT.usage,
          `${path} cannot be written: ${error instanceof Error ? error.message : 'unknown'}`,
        )
      })
      output.result({ licenseId: id, path }, `Wrote ${path}.`)
    })
}

const createFlags = z.object({
  template: z.string().optional(),
  product: z.string().optional(),
  customer: z.string().optional(),
  expires: z.string().optional(),
  key: z.string().optional(),
  externalId: z.string().optional(),
})

function addCreate(group: CliCommand): void {
  const create = group.command('create')
  withEntitlements(create, "an override of the product's entitlements, or null to remove a default")
    .description('create a license, which is perpetual without --template, --expires and --duration-days')
    .option('--template <id>', 'the template whose terms apply unless other options replace them')
    .option('--product <id>', "the product (default with the demo's token: the demo's product)")
    .option('--customer <id>', "the customer (default with the demo's token: the demo's customer)")
    .option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now')
    .option('--key <key>', 'a key of your own (default: a generated one)')
    .option('--external-id <id>', 'the id of the license in your own system')
  withWait(withTerms(create)).run(async (session, given) => {
    const { api, connection, context } = session
    const flags = createFlags.parse(given)
    const { template: templateId } = flags
    const productId = flags.product ?? (templateId === undefined ? connection.demo?.productId : undefined)
    const customerId = flags.customer ?? connection.demo?.customerId
    if ((productId === undefined && templateId === undefined) || customerId === undefined)
      throw new Failure(
        EXIT.usage,
        'A license requires a customer, and a product or a template. Set --customer, and --product or --template',
      )
    const expiresAt = flags.expires === undefined ? undefined : parseMoment(flags.expires, context.nowMs())
    const terms = { ...termsOf(given), ...(expiresAt !== undefined && { expiresAt }) }
    const ends = expiresAt !== undefined || (terms.durationDays ?? null) !== null
    const policy =
      templateId === undefined ? { type: ends ? ('SUBSCRIPTION' as const) : ('PERPETUAL' as const), ...terms } : terms
    const body = {
      ...(templateId !== undefined && { templateId }),
      ...(productId !== undefined && { productId }),
      customerId,
      policy,
      ...(flags.key !== undefined && { key: flags.key }),
      ...(flags.externalId !== undefined && { externalId: flags.externalId }),
      ...entitlementsOf(given),
    }
    const created = await api.call(licenses.createLicense, { body }, waitOf(given))
    printChange(session, created, describeLicense(created.data))
  })
}
