/** Endpoints of licenses. */
import {
  createLicense,
  idParams,
  importedLicenses,
  importLicenses as importLicensesBody,
  license,
  licenseFilter,
  listQuery,
  page,
  renewLicense,
  updateLicense,
} from '@keyward/contract'

import { vendorEndpoint } from '../../http/endpoint.ts'
import { basePath } from '../../http/paths.ts'
import { rowByRow } from '../../http/validation-errors.ts'
import { fileEndpoints, machineEndpoints } from '../machines/routes.ts'
import { actOnLicense } from './actions.ts'
import { importLicenses } from './import.ts'
import { showLicense } from './show.ts'
import { addLicense, changeLicense, deleteLicense, listLicenses, readLicenseRow } from './store.ts'

const tag = 'Licenses'
const path = '/licenses'
const one = { tag, path: `${path}/{id}`, params: idParams } as const

const records = [
  vendorEndpoint(
    'licenses.read',
    {
      method: 'get',
      path,
      tag,
      operationId: 'listLicenses',
      summary: 'List licenses',
      query: listQuery(licenseFilter),
      status: 200,
      answer: page(license),
    },
    ({ db, organizationId, query }) => listLicenses(db, organizationId, query),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path,
      tag,
      operationId: 'createLicense',
      summary: 'Create a license',
      description: 'Without `key` one is generated.',
      body: createLicense,
      status: 201,
      answer: license,
      errors: ['LICENSE_KEY_EXISTS'],
      propagates: true,
    },
    async (call) => {
      const created = await addLicense(call, call.body)
      call.headers['location'] = `${basePath}${path}/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'licenses.write',
    {
      method: 'post',
      path: `${path}/import`,
      tag,
      operationId: 'importLicenses',
      summary: 'Import licenses',
      description: 'Every row or none is added, at most 1,000. A refusal points to every bad row.',
      body: rowByRow('licenses', createLicense),
      documentedBody: importLicensesBody,
      importRows: 'licenses',
      status: 200,
      answer: importedLicenses,
      errors: ['IMPORT_TOO_LARGE', 'LICENSE_KEY_EXISTS'],
      propagates: true,
    },
    (call) => importLicenses(call, call.body),
  ),
  vendorEndpoint(
    'licenses.read',
    { ...one, method: 'get', operationId: 'readLicense', summary: 'Read a license', status: 200, answer: license },
    async ({ db, organizationId, params }) => showLicense(await readLicenseRow(db, organizationId, params.id)),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...one,
      method: 'patch',
      operationId: 'updateLicense',
      summary: 'Change a license',
      description:
        'Given fields of the policy are merged into it, and the whole must be valid. ' +
        'Machines that hold slots keep them when the limit falls below their number.',
      body: updateLicense,
      status: 200,
      answer: license,
      propagates: true,
    },
    (call) => changeLicense(call, call.params.id, call.body),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...one,
      method: 'delete',
      operationId: 'deleteLicense',
      summary: 'Delete a license',
      description: 'Its machines and the access rules scoped to it go along.',
      status: 204,
      propagates: true,
    },
    (call) => deleteLicense(call, call.params.id),
  ),
]

function action(type: 'suspend' | 'reinstate' | 'revoke', summary: string) {
  return vendorEndpoint(
    'licenses.write',
    {
      tag,
      method: 'post',
      path: `${path}/{id}/${type}`,
      operationId: `${type}License`,
      summary,
      description: 'Repeating it changes nothing.',
      params: idParams,
      status: 200,
      answer: license,
      errors: type === 'revoke' ? [] : ['LICENSE_REVOKED'],
      propagates: true,
    },
    (call) => actOnLicense(call, call.params.id, { type }),
  )
}

const actions = [
  action('suspend', 'Suspend a license'),
  action('reinstate', 'Reinstate a suspended license'),
  action('revoke', 'Revoke a license for good'),
  vendorEndpoint(
    'licenses.write',
    {
      tag,
      method: 'post',
      path: `${path}/{id}/renew`,
      operationId: 'renewLicense',
      summary: 'Renew a license',
      description: 'Moves the expiry; an expired license is active again.',
      params: idParams,
      body: renewLicense,
      status: 200,
      answer: license,
      errors: ['LICENSE_REVOKED'],
      propagates: true,
    },
    (call) => actOnLicense(call, call.params.id, { type: 'renew', expiresAt: call.body.expiresAt }),
  ),
]

export const licenses = [...records, ...actions, ...machineEndpoints, ...fileEndpoints]
