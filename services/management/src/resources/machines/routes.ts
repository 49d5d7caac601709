/** Endpoints of what belongs to a license: its machines and its offline file. */
import { idParams, licenseFile, listQuery, machine, machineParams, page, requestLicenseFile } from '@keyward/contract'

import { appEndpoint, vendorEndpoint } from '../../http/endpoint.ts'
import { issueFileForApp } from '../../license-files/for-app.ts'
import { issueLicenseFile } from '../../license-files/issue.ts'
import { readLicenseRow } from '../licenses/store.ts'
import { listMachines, removeMachine } from './store.ts'

export const machineEndpoints = [
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path: '/licenses/{id}/machines',
      tag: 'Machines',
      operationId: 'listMachines',
      summary: 'List the machines of a license',
      params: idParams,
      query: listQuery({}),
      status: 200,
      answer: page(machine),
    },
    ({ db, organizationId, params, query }) => listMachines(db, organizationId, params.id, query),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'delete',
      path: '/licenses/{id}/machines/{machineId}',
      tag: 'Machines',
      operationId: 'removeMachine',
      summary: 'Remove a machine',
      description: 'Its slot is free again.',
      params: machineParams,
      status: 204,
      propagates: true,
    },
    (call) => removeMachine(call, call.params.id, call.params.machineId),
  ),
]

export const fileEndpoints = [
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path: '/licenses/{id}/file',
      tag: 'License files',
      operationId: 'downloadLicenseFile',
      summary: 'Download the offline license file',
      description: 'Only for an active license. Good for 30 days, or until the license expires if that is sooner.',
      params: idParams,
      status: 200,
      answer: licenseFile,
      answerType: 'text/plain',
      errors: ['REVOKED', 'SUSPENDED', 'EXPIRED'],
    },
    async (call) => issueLicenseFile(call, await readLicenseRow(call.db, call.organizationId, call.params.id)),
  ),
  appEndpoint(
    {
      method: 'post',
      path: '/licenses/file',
      tag: 'License files',
      operationId: 'requestLicenseFile',
      summary: 'Get the offline license file for an app',
      description:
        'With an API key, and only where a check from this caller would be VALID without taking a new machine slot. ' +
        "Otherwise 409 with the check's code; MACHINE_NOT_ACTIVE where the machine would first have to take a slot.",
      body: requestLicenseFile,
      status: 200,
      answer: licenseFile,
      answerType: 'text/plain',
      errors: [
        { code: 'NOT_FOUND', status: 409 },
        'REVOKED',
        'SUSPENDED',
        'EXPIRED',
        'BLACKLISTED',
        'FINGERPRINT_REQUIRED',
        'TOO_MANY_MACHINES',
        'MACHINE_NOT_ACTIVE',
      ],
      readOnly: true,
    },
    issueFileForApp,
  ),
]
