/**
 * The commands `activity`, `alert list` and `alert acknowledge`: the activity of licenses, and alerts about overused licenses and disabled
 * webhook endpoints.
 */

import { code } from '@keyward/contract'
import { activityEntry, activityType, alert } from '@keyward/contract/management/activity'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import type { Session } from '../../session.ts'
import { ago } from '../../times.ts'
import { findLicense } from '../license-format.ts'
import { fetchList, listFlags, periodFlags, periodOf, printList, withLimit, withPeriod } from '../lists.ts'

type Open = (command: Command) => Session

const activityFlags = listFlags.extend({
  ...periodFlags.shape,
  type: activityType.optional(),
  code: code.optional(),
  machine: z.string().optional(),
})
const alertFlags = listFlags.extend({ open: z.boolean().optional(), license: z.string().optional() })

export function addActivityCommands(parent: Command, open: Open): void {
  withPeriod(withLimit(parent.command('activity').description('list checks and changes of licenses, newest first')))
    .argument('[license]', 'only entries of this license: its id or key')
    .addOption(new Option('--type <type>', 'only entries of this type').choices(activityType.options))
    .addOption(new Option('--code <code>', 'only checks with this code').choices(code.options))
    .option('--machine <id>', 'only entries of this machine')
    .action(async (idOrKey: string | undefined, flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, type, code: only, machine: machineId, ...period } = activityFlags.parse(flags)
      const path =
        idOrKey === undefined ? '/activity' : `/licenses/${(await findLicense(session.api, idOrKey)).id}/activity`
      const filters = { type, code: only, machineId, ...periodOf(period, session.context.nowMs()) }
      const list = await fetchList(session.api, path, activityEntry, limit, filters)
      printList(session, list, ['AT', 'EVENT', 'CODE', 'COUNT', 'MACHINE ID', 'BY', 'LICENSE'], (one) => [
        one.at,
        one.type,
        one.code ?? '–',
        String(one.count),
        one.machineId ?? '–',
        one.actor?.name ?? one.actor?.type ?? '–',
        one.licenseId,
      ])
    })
  const group = parent.command('alert').description('alerts of overused licenses and disabled webhook endpoints')
  withLimit(group.command('list').description('list alerts, newest first'))
    .option('--open', 'only open alerts')
    .option('--license <license>', 'only alerts of this license: its id or key')
    .action(async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, open: isOpen, license } = alertFlags.parse(flags)
      const licenseId = license && (await findLicense(session.api, license)).id
      const filters = { open: isOpen === true ? 'true' : undefined, licenseId }
      const list = await fetchList(session.api, '/alerts', alert, limit, filters)
      const nowMs = session.context.nowMs()
      printList(session, list, ['ID', 'TYPE', 'LICENSE OR ENDPOINT', 'COUNT', 'LAST', 'STATE'], (one) => [
        one.id,
        one.kind,
        one.licenseId ?? one.webhookEndpointId ?? '–',
        String(one.count),
        ago(one.lastAt, nowMs),
        one.acknowledgedAt === null ? 'open' : 'acknowledged',
      ])
    })
  group
    .command('acknowledge')
    .description('acknowledge an alert; the next occurrence opens a new one')
    .argument('<id>', 'the id of the alert')
    .action(async (id: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const path = `/alerts/${encodeURIComponent(id)}/acknowledge`
      const { data } = await api.call({ method: 'POST', path }, alert)
      output.result(data, `Acknowledged the alert ${id}.`)
    })
}
