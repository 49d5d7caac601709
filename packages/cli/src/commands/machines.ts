/** The commands for the machines that hold slots of licenses: `machine list`, `machine find`, `machine release`. */

import { machines } from '@keyward/contract'
import { oneLine } from '@keyward/contract/text'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { ago } from '../times.ts'
import { isExported, withExport } from './export.ts'
import { findLicense } from './license-format.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const findFlags = listFlags.extend({ id: z.string().optional(), hostname: z.string().optional() })

export function addMachineCommands(parent: CliCommand): void {
  const group = parent.command('machine').description('machines that hold slots of licenses')
  withLimit(group.command('list').description('list the machines of a license'))
    .argument('<license>', 'the id or the key of the license')
    .run(async (session, flags, idOrKey: string) => {
      const { limit } = listFlags.parse(flags)
      const { id } = await findLicense(session.api, idOrKey)
      const list = await readList(session.api, machines.listMachines, { params: { id } }, limit)
      const nowMs = session.context.nowMs()
      printList(session, list, (one) => ({
        'MACHINE ID': one.machineId,
        NAME: one.hostname ?? '–',
        'FIRST SEEN': ago(one.firstSeenAt, nowMs),
        'LAST SEEN': ago(one.lastSeenAt, nowMs),
        ID: one.id,
      }))
    })
  const find = group.command('find').description('find machines of all licenses by machine id or host name')
  withExport(withLimit(find))
    .option('--id <id>', 'the exact machine id')
    .option('--hostname <name>', 'the host name, in any case')
    .run(async (session, flags) => {
      const { limit, id: machineId, hostname } = findFlags.parse(flags)
      const query = { machineId, hostname }
      if (await isExported(session, flags, machines.exportMachines, query)) return
      const list = await readList(session.api, machines.findMachines, { query }, limit)
      const nowMs = session.context.nowMs()
      printList(session, list, (one) => ({
        'MACHINE ID': one.machineId,
        NAME: one.hostname ?? '–',
        'LAST SEEN': ago(one.lastSeenAt, nowMs),
        LICENSE: one.licenseId,
        ID: one.id,
      }))
    })
  const release = group.command('release')
  withWait(release.description('release the slot of a machine, so that another machine can take it'))
    .argument('<license>', 'the id or the key of the license')
    .argument('<machine>', 'the machine id or the id of the machine record')
    .run(async (session, flags, idOrKey: string, given: string) => {
      const { api } = session
      const { id } = await findLicense(api, idOrKey)
      const { items } = await readList(api, machines.listMachines, { params: { id } })
      const found = items.find((one) => one.machineId === given) ?? items.find((one) => one.id === given)
      if (found === undefined)
        throw new Failure(EXIT.apiError, `No machine of this license has the id ${JSON.stringify(given)}`, {
          code: 'NOT_FOUND',
        })
      const input = { params: { id, machineId: found.id } }
      const { appliedBy } = await api.call(machines.removeMachine, input, waitOf(flags))
      const data = { released: true, ...found }
      printChange(session, { data, appliedBy }, `Released the slot of ${oneLine(found.machineId)}.`)
    })
}
