import { licenseFiles as operations } from '@keyward/contract'

import { notFound } from '../http/problem.ts'
import { implement } from '../operations/implement.ts'
import { dispositionOf, issueLicenseFile, selectForFile } from './issue.ts'

const tag = { name: 'License files', description: 'Signed files with which an app can check its license offline.' }

export const licenseFiles = implement(tag, operations, {
  downloadLicenseFile: {
    summary: 'Download the offline license file',
    description:
      'Requires an active license whose term has started. The file is valid for 30 days, or until the license expires if that is sooner. ' +
      'The activity of the license has an entry FILE_ISSUED.',
    errors: ['REVOKED', 'SUSPENDED', 'EXPIRED', 'NOT_STARTED'],
    async handle(call) {
      const license = await selectForFile(call).where('licenses.id', '=', call.params.id).executeTakeFirst()
      if (!license) throw notFound('license')
      return issueLicenseFile(call, license)
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
