/** The commands for the machines that hold slots of licenses: `machine list`, `machine find`, `machine release`. */

import { foundMachine, machine } from '@keyward/contract'
import type { Command } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { ago } from '../times.ts'
import { findLicense } from './license-format.ts'
import { fetchList, listFlags, noContent, printList, withLimit } from './lists.ts'

const findFlags = listFlags.extend({ id: z.string().optional(), hostname: z.string().optional() })

const HEADING = ['MACHINE ID', 'NAME', 'FIRST SEEN', 'LAST SEEN', 'ID']

export function addMachineCommands(parent: Command, open: (command: Command) => Session): void {
  const group = parent.command('machine').description('machines that hold slots of licenses')
  withLimit(group.command('list').description('list the machines of a license'))
    .argument('<license>', 'the id or the key of the license')
    .action(async (idOrKey: string, flags: unknown, command: Command) => {
      const session = open(command)
      const { limit } = listFlags.parse(flags)
      const { id } = await findLicense(session.api, idOrKey)
      const list = await fetchList(session.api, `/licenses/${id}/machines`, machine, limit)
      const nowMs = session.context.nowMs()
      printList(session, list, HEADING, (one) => [
        one.machineId,
        one.hostname ?? '–',
        ago(one.firstSeenAt, nowMs),
        ago(one.lastSeenAt, nowMs),
        one.id,
      ])
    })
  withLimit(group.command('find').description('find machines of all licenses by machine id or host name'))
    .option('--id <id>', 'the exact machine id')
    .option('--hostname <name>', 'the host name, in any case')
    .action(async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, id: machineId, hostname } = findFlags.parse(flags)
      const list = await fetchList(session.api, '/machines', foundMachine, limit, { machineId, hostname })
      const nowMs = session.context.nowMs()
      printList(session, list, ['MACHINE ID', 'NAME', 'LAST SEEN', 'LICENSE', 'ID'], (one) => [
        one.machineId,
        one.hostname ?? '–',
        ago(one.lastSeenAt, nowMs),
        one.licenseId,
        one.id,
      ])
    })
  group
    .command('release')
    .description('release the slot of a machine, so that another machine can take it')
    .argument('<license>', 'the id or the key of the license')
    .argument('<machine>', 'the machine id or the id of the machine record')
    .action(async (idOrKey: string, given: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const { id } = await findLicense(api, idOrKey)
      const { items } = await fetchList(api, `/licenses/${id}/machines`, machine, Number.MAX_SAFE_INTEGER)
      const found = items.find((one) => one.machineId === given) ?? items.find((one) => one.id === given)
      if (found === undefined)
        throw new Failure(EXIT.apiError, `No machine of this license has the id ${JSON.stringify(given)}`, {
          code: 'NOT_FOUND',
        })
      await api.call({ method: 'DELETE', path: `/licenses/${id}/machines/${found.id}` }, noContent)
      output.result({ released: true, ...found }, `Released the slot of ${found.machineId}.`)
    })
}
