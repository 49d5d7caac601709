/** Issues license files to customers in the portal (docs/api.md#u5). */

import { portalFiles as operations } from '@keyward/contract/management/portal'

import { implement } from '../operations/implement.ts'
import { countAct, readOwnLicense } from '../resources/portal/licenses.ts'
import { portalTag } from '../resources/portal/portal.ts'
import { issueMachineFile } from './for-machine.ts'
import { dispositionOf } from './issue.ts'

export const portalFiles = implement(portalTag, operations, {
  issuePortalFile: {
    summary: 'Issue an offline license file for one machine to the customer',
    description: 'Requires the action `files`. The machine takes a slot, which is free again when the file ends.',
    errors: ['REVOKED', 'SUSPENDED', 'EXPIRED', 'NOT_STARTED', 'TOO_MANY_MACHINES'],
    async handle(call) {
      const { params, body, dependencies, headers } = call
      await countAct(call, 'files')
      await readOwnLicense(call, params.id)
      const file = await issueMachineFile(call, dependencies.keyring, params.id, body)
      headers['content-disposition'] = dispositionOf(params.id)
      return file
    },
  },
})
