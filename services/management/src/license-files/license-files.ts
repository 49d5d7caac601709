import { licenseFiles as operations } from '@keyward/contract'

import { notFound } from '../http/problem.ts'
import { implement } from '../operations/implement.ts'
import { issueMachineFile } from './for-machine.ts'
import { dispositionOf, issueLicenseFile, selectForFile } from './issue.ts'

const tag = { name: 'License files', description: 'Signed files with which an app can check its license offline.' }

export const licenseFiles = implement(tag, operations, {
  downloadLicenseFile: {
    summary: 'Download the offline license file',
    description:
      'Requires an active license whose term has started. The file is valid for `policy.fileDays`, or until the license ends if that is ' +
      'sooner. If `fileDays` is null, it is valid as long as a new lease, or for 30 days without leases. ' +
      'The activity of the license has an entry FILE_ISSUED.',
    errors: ['REVOKED', 'SUSPENDED', 'EXPIRED', 'NOT_STARTED'],
    async handle(call) {
      const license = await selectForFile(call).where('licenses.id', '=', call.params.id).executeTakeFirst()
      if (!license) throw notFound('license')
      return issueLicenseFile(call, license)
    },
  },
  issueMachineFile: {
    summary: 'Issue an offline license file for one machine',
    description:
      'Only this machine can use the file. The machine takes a slot, which is free again when the file ends. Until then, apps cannot ' +
      'release it. The license must be active, and its term must have started. Access rules are not applied.',
    errors: ['REVOKED', 'SUSPENDED', 'EXPIRED', 'NOT_STARTED', 'TOO_MANY_MACHINES'],
    async handle(call) {
      const { params, body, dependencies, headers } = call
      const file = await issueMachineFile(call, dependencies.keyring, params.id, body)
      headers['content-disposition'] = dispositionOf(params.id)
      return file
    },
  },
  requestLicenseFile: {
    summary: 'Get the offline license file for an app',
    description:
      'Called with an API key. Returns the file only if a check from this caller would be VALID without a new machine slot. ' +
      "Otherwise the response is 409 with the check's code, or MACHINE_NOT_ACTIVE if the machine holds no slot yet. " +
      'A validator decides; if none is reachable, the response is 503.',
    errors: [
      { code: 'NOT_FOUND', status: 409 },
      'REVOKED',
      'SUSPENDED',
      'EXPIRED',
      'NOT_STARTED',
      'BLACKLISTED',
      'FINGERPRINT_REQUIRED',
      'TOO_MANY_MACHINES',
      'MACHINE_NOT_ACTIVE',
    ],
    detached: true,
    async handle(call) {
      const { dependencies, organizationId, credential, actor, headers } = call
      const { licenseKey, fingerprint: machineId } = call.body
      const bound = credential.productId === null ? {} : { productId: credential.productId }
      const request = { licenseKey, machineId, ...call.origin(), ...bound, actor }
      const { licenseId, text } = await dependencies.appFiles.issue(organizationId, request)
      headers['content-disposition'] = dispositionOf(licenseId)
      return text
    },
  },
})
