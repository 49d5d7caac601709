/** The commands `activity`, `alert list` and `alert acknowledge`: the activity of licenses and alerts about overused licenses. */

import { activityEntry, alert } from '@keyward/contract/management/activity'
import type { Command } from 'commander'

import type { Session } from '../../session.ts'
import { ago } from '../../times.ts'
import { findLicense } from '../license-format.ts'
import { fetchList, listFlags, printList, withLimit } from '../lists.ts'

type Open = (command: Command) => Session

export function addActivityCommands(parent: Command, open: Open): void {
  withLimit(parent.command('activity').description('list checks and changes of licenses, newest first'))
    .argument('[license]', 'only entries of this license: its id or key')
    .action(async (idOrKey: string | undefined, flags: unknown, command: Command) => {
      const session = open(command)
      const { limit } = listFlags.parse(flags)
      const path =
        idOrKey === undefined ? '/activity' : `/licenses/${(await findLicense(session.api, idOrKey)).id}/activity`
      const list = await fetchList(session.api, path, activityEntry, limit)
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
  withLimit(group.command('list').description('list alerts, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const list = await fetchList(session.api, '/alerts', alert, listFlags.parse(flags).limit)
      const nowMs = session.context.nowMs()
      printList(session, list, ['ID', 'TYPE', 'LICENSE OR ENDPOINT', 'COUNT', 'LAST', 'STATE'], (one) => [
        one.id,
        one.kind,
        one.licenseId ?? one.webhookEndpointId ?? '–',
        String(one.count),
        ago(one.lastAt, nowMs),
        one.acknowledgedAt === null ? 'open' : 'acknowledged',
      ])
    },
  )
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
