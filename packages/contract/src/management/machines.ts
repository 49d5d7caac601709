/** Machines that hold the slots of licenses (docs/api.md#s6). */

import { z } from 'zod'

import { exactText, MAX_MACHINE_ID_BYTES, optionalExactText, text } from '../text.ts'
import { checkedLicenseKey } from '../validation.ts'
import { EXAMPLE_ID, exportedRows, exportQuery, id, listQuery, page, timestamp } from './common.ts'
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
  exportMachines: {
    route: 'GET /machines/export',
    needs: 'licenses.read',
    query: exportQuery(machineFilter),
    returns: exportedRows,
    file: 'text/csv',
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

/** The maximum number of machines in a list for an app, and the maximum length of a host name in it (docs/api.md#u1). */
export const MAX_LISTED_MACHINES = 100
export const MAX_LISTED_HOSTNAME = 64

/** The body of a request of an app for the machines of its license. */
const requestMachines = z
  .strictObject({
    licenseKey: checkedLicenseKey,
    fingerprint: optionalExactText(MAX_MACHINE_ID_BYTES).meta({
      description: 'The machine id of the caller, whose machine gets `current: true`. Null and "" count as absent.',
      example: 'A4-F1-00-12',
    }),
  })
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', fingerprint: 'A4-F1-00-12' } })

export const licenseMachines = z
  .object({
    used: z.int().meta({ description: 'The number of taken slots.', example: 3 }),
    max: z
      .int()
      .nullable()
      .meta({ description: 'The number of slots of the license; null without a limit.', example: 3 }),
    releasesLeft: z.int().nullable().meta({
      description: 'The number of slots that apps may release now; null without `policy.maxReleases`.',
      example: 2,
    }),
    machines: z
      .array(
        z.object({
          ref: z.uuid().meta({
            description: 'The name of the machine for `POST /api/v1/deactivate`. It reveals no machine id.',
            example: EXAMPLE_ID,
          }),
          hostname: z
            .string()
            .nullable()
            .meta({
              description: `The host name that the machine sent, cut to ${MAX_LISTED_HOSTNAME} characters.`,
              example: 'Ada’s laptop',
            }),
          lastSeenAt: timestamp('The approximate time of its last check.'),
          current: z.boolean().meta({ description: 'Whether the machine sent this request.', example: false }),
        }),
      )
      .meta({
        description:
          `At most ${MAX_LISTED_MACHINES} machines that hold slots, those that took their slots first. The machine that has not been ` +
          'seen for the longest time comes first.',
      }),
  })
  .meta({ id: 'LicenseMachines', description: 'The machines that hold slots of a license, for its app.' })
export type LicenseMachines = z.infer<typeof licenseMachines>

/** The operation of apps. */
export const slots = operations({
  requestMachines: {
    route: 'POST /machines',
    needs: 'apiKey',
    body: requestMachines,
    returns: licenseMachines,
    readOnly: true,
  },
})
