/** Machines that hold the slots of licenses (docs/api.md#s6). */

import { z } from 'zod'

import { exactText, MAX_MACHINE_ID_BYTES, text } from '../text.ts'
import { EXAMPLE_ID, id, listQuery, page, timestamp } from './common.ts'
import { operations } from './operations.ts'

export const machine = z
  .object({
    id: z.uuid().meta({ description: 'The id of this record.', example: EXAMPLE_ID }),
    machineId: z.string().meta({ description: 'The machine id as the app sent it.', example: 'A4-F1-00-12' }),
    hostname: z.string().nullable().meta({ description: 'The host name that the app sent.', example: 'build-7' }),
    firstSeenAt: timestamp('The time at which the machine took its slot.'),
    lastSeenAt: timestamp('The approximate time of its last check.'),
    leaseEndsAt: timestamp(
      'The end of the lease, which checks extend; null if the slot is held until its release.',
    ).nullable(),
  })
  .meta({ id: 'Machine', description: 'A machine that holds a slot.' })

const machineParams = z.strictObject({
  id: id('The id of the license.'),
  machineId: id("The id of the machine's record."),
})

export const foundMachine = machine
  .extend({
    licenseId: z.uuid().meta({ description: 'The license whose slot the machine holds.', example: EXAMPLE_ID }),
  })
  .meta({ id: 'FoundMachine', description: 'A machine that holds a slot, and its license.' })
export type FoundMachine = z.infer<typeof foundMachine>

const machineFilter = {
  machineId: exactText(MAX_MACHINE_ID_BYTES)
    .optional()
    .meta({ description: 'The exact machine id.', example: 'A4-F1-00-12' }),
  hostname: text(MAX_MACHINE_ID_BYTES)
    .optional()
    .meta({ description: 'The complete host name that the app sent, in any case.', example: 'build-7' }),
}

export const machines = operations({
  findMachines: {
    route: 'GET /machines',
    needs: 'licenses.read',
    query: listQuery(machineFilter),
    returns: page(foundMachine),
  },
  listMachines: {
    route: 'GET /licenses/{id}/machines',
    needs: 'licenses.read',
    query: listQuery({}),
    returns: page(machine),
  },
  removeMachine: {
    route: 'DELETE /licenses/{id}/machines/{machineId}',
    needs: 'licenses.write',
    params: machineParams,
    propagates: true,
  },
})
