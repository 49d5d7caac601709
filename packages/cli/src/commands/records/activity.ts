/**
 * The commands `activity`, `alert list` and `alert acknowledge`: the activity of licenses, and alerts about overused licenses and disabled
 * webhook endpoints.
 */

import { code } from '@keyward/contract'
import { activity, activityType, alerts } from '@keyward/contract/management/activity'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../../command.ts'
import { ago } from '../../times.ts'
import { findLicense } from '../license-format.ts'
import { listFlags, periodFlags, periodOf, printList, readList, withLimit, withPeriod } from '../lists.ts'

const activityFlags = listFlags.extend({
  ...periodFlags.shape,
  type: activityType.optional(),
  code: code.optional(),
  machine: z.string().optional(),
})
const alertFlags = listFlags.extend({ open: z.boolean().optional(), license: z.string().optional() })

export function addActivityCommands(parent: CliCommand): void {
  withPeriod(withLimit(parent.command('activity').description('list checks and changes of licenses, newest first')))
    .argument('[license]', 'only entries of this license: its id or key')
    .addOption(new Option('--type <type>', 'only entries of this type').choices(activityType.options))
    .addOption(new Option('--code <code>', 'only checks with this code').choices(code.options))
    .option('--machine <id>', 'only entries of this machine')
    .run(async (session, flags, idOrKey: string | undefined) => {
      const { limit, type, code: only, machine: machineId, ...period } = activityFlags.parse(flags)
      const { api, context } = session
      const query = { type, code: only, machineId, ...periodOf(period, context.nowMs()) }
      const list =
        idOrKey === undefined
          ? await readList(api, activity.listActivity, { query }, limit)
          : await readList(
              api,
              activity.listLicenseActivity,
              { params: { id: (await findLicense(api, idOrKey)).id }, query },
              limit,
            )
      printList(session, list, (one) => ({
        AT: one.at,
        EVENT: one.type,
        CODE: one.code ?? '–',
        COUNT: String(one.count),
        'MACHINE ID': one.machineId ?? '–',
        BY: one.actor?.name ?? one.actor?.type ?? '–',
        LICENSE: one.licenseId,
      }))
    })
  const group = parent
    .command('alert')
    .description('alerts of overused licenses, disabled webhook endpoints and waiting events of shops')
  withLimit(group.command('list').description('list alerts, newest first'))
    .option('--open', 'only open alerts')
    .option('--license <license>', 'only alerts of this license: its id or key')
    .run(async (session, flags) => {
      const { limit, open: isOpen, license } = alertFlags.parse(flags)
      const licenseId = license === undefined ? undefined : (await findLicense(session.api, license)).id
      const query = { open: isOpen === true ? 'true' : undefined, licenseId }
      const list = await readList(session.api, alerts.listAlerts, { query }, limit)
      const nowMs = session.context.nowMs()
      printList(session, list, (one) => ({
        ID: one.id,
        TYPE: one.kind,
        ABOUT: one.licenseId ?? one.webhookEndpointId ?? one.connectionId ?? '–',
        COUNT: String(one.count),
        LAST: ago(one.lastAt, nowMs),
        STATE: one.acknowledgedAt === null ? 'open' : 'acknowledged',
      }))
    })
  group
    .command('acknowledge')
    .description('acknowledge an alert; the next occurrence opens a new one')
    .argument('<id>', 'the id of the alert')
    .run(async ({ api, output }, _flags, id: string) => {
      const { data } = await api.call(alerts.acknowledgeAlert, { params: { id } })
      output.result(data, `Acknowledged the alert ${id}.`)
    })
}
