import { randomUUID } from 'node:crypto'

import { type LicenseJob, licenseJobs, shownAction } from '@keyward/contract/management/license-jobs'
import { Argument } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'
import { parseMoment } from '../times.ts'
import { filterOf, withFilter } from './license-filter.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { wholeNumber } from './terms.ts'

const startFlags = z.object({
  all: z.boolean().optional(),
  reason: z.string().optional(),
  expires: z.string().optional(),
  allowEarlier: z.boolean().optional(),
  days: z.int().optional(),
  expectedTotal: z.int().optional(),
  dryRun: z.boolean().default(false),
})

/** Returns the action with the options that were given. The schema names an option that is missing or does not belong to the action. */
function actionOf(type: string, { reason, expires, allowEarlier, days }: z.output<typeof startFlags>, nowMs: number) {
  const expiresAt = expires === undefined ? undefined : parseMoment(expires, nowMs)
  const given = Object.entries({ reason, expiresAt, allowEarlier, days }).filter(([, value]) => value !== undefined)
  const action = { type, ...Object.fromEntries(given) }
  const { data, error } = shownAction.safeParse(action)
  if (error) throw new Failure(EXIT.usage, `The options do not fit "${type}". ${z.prettifyError(error)}`)
  return data
}

export function addLicenseJobCommands(parent: CliCommand): void {
  const group = parent.command('license-job').description('actions on many licenses, which continue in the service')
  withFilter(group.command('start').description('start an action on the licenses that match the options'))
    .addArgument(new Argument('<action>').choices(['suspend', 'reinstate', 'revoke', 'renew', 'extend', 'delete']))
    .option('--all', 'all licenses; required without another option that selects licenses')
    .option('--reason <text>', 'the reason of a suspension or revocation')
    .option('--expires <when>', 'the new expiry of renew: a date, or 30d, 12h, 1y from now')
    .option('--allow-earlier', 'renew also with an expiry that is earlier than the present one')
    .option('--days <days>', 'the number of days that extend adds', wholeNumber)
    .option('--dry-run', 'only show the effect')
    .option(
      '--expected-total <count>',
      'fail when another number of licenses is selected now than in the dry run',
      wholeNumber,
    )
    .run(async ({ api, output, context }, given, type: string) => {
      const flags = startFlags.parse(given)
      const action = actionOf(type, flags, context.nowMs())
      const filter = filterOf(given, context.nowMs())
      const hasFilter = Object.keys(filter).length > 0
      if (hasFilter === (flags.all === true))
        throw new Failure(EXIT.usage, 'Select licenses with options such as --product, or all licenses with --all.')
      const body = { action, ...(hasFilter ? { filter } : { all: true as const }) }
      if (!flags.dryRun) {
        const started = { body: { ...body, expectedTotal: flags.expectedTotal } }
        const retry = { idempotencyKey: randomUUID() }
        const { data } = await api.call(licenseJobs.startLicenseJob, started, { retry })
        output.result(data, describeJob(data))
        return
      }
      const { data } = await api.call(licenseJobs.dryRunLicenseJob, { body })
      const lines = [
        `${data.changed} of ${data.total} licenses would change.`,
        ...data.reasons.map(({ reason, count }) => `${count} would not: ${reason}`),
        ...data.examples.others.map(({ key, reason }) => `  ${key ?? ''}  ${reason}`),
      ]
      output.result(data, lines.join('\n'))
    })
  withLimit(group.command('list').description('list the jobs, newest first')).run(async (session, flags) => {
    const { limit } = listFlags.parse(flags)
    const list = await readList(session.api, licenseJobs.listLicenseJobs, {}, limit)
    printList(session, list, (one) => ({
      ACTION: one.action.type,
      STATE: one.state,
      DONE: `${one.done} of ${one.total}`,
      CHANGED: String(one.changed),
      ID: one.id,
    }))
  })
  for (const [name, operation, description] of [
    ['show', licenseJobs.readLicenseJob, 'show a job with its progress'],
    ['cancel', licenseJobs.cancelLicenseJob, 'cancel a job; licenses that have been changed stay changed'],
    ['undo', licenseJobs.undoLicenseJob, 'restore the licenses that have not changed since the job'],
  ] as const)
    group
      .command(name)
      .description(description)
      .argument('<id>', 'the id of the job')
      .run(async ({ api, output }, _flags, id: string) => {
        const { data } = await api.call(operation, { params: { id } })
        output.result(data, describeJob(data))
      })
}

function describeJob({ id, action, state, total, done, problem, errors, ...job }: LicenseJob): string {
  return describe({
    id,
    action: action.type,
    state,
    done: `${done} of ${total}, ${job.changed} changed, ${job.skipped} skipped, ${job.failed} failed`,
    ...(state.startsWith('undo') && { undo: `${job.restored} restored, ${job.kept} kept` }),
    ...(problem !== null && { problem }),
    ...(errors.length > 0 && {
      errors: errors.map(({ key, id: licenseId, reason }) => `${key ?? licenseId} ${reason}`).join(', '),
    }),
    ...(job.undoableUntil !== null && { undo: `until ${job.undoableUntil}` }),
  })
}
