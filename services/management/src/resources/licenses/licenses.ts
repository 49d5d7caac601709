import {
  createLicense,
  idParams,
  importedLicense,
  importedLicenses,
  importLicenses as importLicensesBody,
  license,
  licenseFilter,
  licenseSorting,
  renewLicense,
  replaceLicenseKey as replaceLicenseKeyBody,
  updateLicense,
} from '@keyward/contract'

import { crudEndpoints } from '../../crud/endpoints.ts'
import { MAX_METADATA_BODY_BYTES, vendorEndpoint } from '../../http/endpoint.ts'
import { rowsOf } from '../../http/rows.ts'
import { actOnLicense, replaceLicenseKey } from './actions.ts'
import { importLicenses } from './import.ts'
import { listLicenses } from './list.ts'
import { readLicenseRow, showLicense } from './rows.ts'
import { addLicense, changeLicense, deleteLicense } from './store.ts'

const tag = {
  name: 'Licenses',
  description: 'The right of a customer to use a product: active, suspended, expired or revoked.',
}
const crud = crudEndpoints({
  tag,
  path: '/licenses',
  operation: 'License',
  noun: 'a license',
  readPermission: 'licenses.read',
  writePermission: 'licenses.write',
  schema: license,
})

const importEndpoint = vendorEndpoint(
  'licenses.write',
  {
    method: 'post',
    path: '/licenses/import',
    tag,
    operationId: 'importLicenses',
    summary: 'Import licenses',
    description: 'Adds all rows, at most 1,000, or none. An error response lists every invalid row.',
    rows: rowsOf('licenses', importedLicense, { maxRowBytes: MAX_METADATA_BODY_BYTES }),
    documentedBody: importLicensesBody,
    maxBodyBytes: 50 * 1024 * 1024,
    status: 200,
    response: importedLicenses,
    errors: ['IMPORT_TOO_LARGE', 'LICENSE_KEY_EXISTS', 'QUOTA_EXCEEDED', 'VALIDATORS_OUTDATED'],
    propagates: true,
  },
  (call) => importLicenses(call, call.body),
)

/** The fields that the definitions of all action endpoints share. */
const action = {
  tag,
  method: 'post',
  params: idParams,
  status: 200,
  response: license,
  errors: ['LICENSE_REVOKED'],
  propagates: true,
} as const

const description = 'Repeating the request changes nothing.'

export const licenses = [
  crud.list({ ...licenseFilter, ...licenseSorting }, (call) => listLicenses(call, call.query)),
  crud.create(
    {
      description: 'Without `key`, the license gets a generated one.',
      body: createLicense,
      maxBodyBytes: MAX_METADATA_BODY_BYTES,
      errors: ['LICENSE_KEY_EXISTS', 'QUOTA_EXCEEDED', 'VALIDATORS_OUTDATED'],
      propagates: true,
    },
    (call) => addLicense(call, call.body),
  ),
  importEndpoint,
  crud.read({}, async (call) => showLicense(await readLicenseRow(call, call.params.id))),
  crud.change(
    {
      description:
        'Merges the given fields of the policy into the stored policy. The merged policy must be valid. ' +
        'Machines keep their slots when the limit falls below their number.',
      body: updateLicense,
      maxBodyBytes: MAX_METADATA_BODY_BYTES,
      errors: ['QUOTA_EXCEEDED', 'VALIDATORS_OUTDATED'],
      propagates: true,
    },
    (call) => changeLicense(call, call.params.id, call.body),
  ),
  crud.delete(
    {
      description: 'Also deletes the machines and alerts of the license, and the access rules of its scope.',
      propagates: true,
    },
    (call) => deleteLicense(call, call.params.id),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...action,
      path: '/licenses/{id}/suspend',
      operationId: 'suspendLicense',
      summary: 'Suspend a license',
      description,
    },
    (call) => actOnLicense(call, call.params.id, { type: 'suspend' }),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...action,
      path: '/licenses/{id}/reinstate',
      operationId: 'reinstateLicense',
      summary: 'Reinstate a suspended license',
      description,
    },
    (call) => actOnLicense(call, call.params.id, { type: 'reinstate' }),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...action,
      path: '/licenses/{id}/revoke',
      operationId: 'revokeLicense',
      summary: 'Revoke a license permanently',
      description,
      errors: [],
    },
    (call) => actOnLicense(call, call.params.id, { type: 'revoke' }),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...action,
      path: '/licenses/{id}/renew',
      operationId: 'renewLicense',
      summary: 'Renew a license',
      description: 'Moves the expiry. An expired license becomes active again.',
      body: renewLicense,
    },
    (call) => actOnLicense(call, call.params.id, { type: 'renew', expiresAt: call.body.expiresAt }),
  ),
  vendorEndpoint(
    'licenses.write',
    {
      ...action,
      path: '/licenses/{id}/replace-key',
      operationId: 'replaceLicenseKey',
      summary: 'Replace the key of a license',
      description:
        'Replaces the key of the license, for example because the old one has leaked. Without `key`, a key is generated. ' +
        'Everything else stays unchanged. Checks with the old key get `NOT_FOUND`.',
      body: replaceLicenseKeyBody.optional(),
      errors: ['LICENSE_REVOKED', 'LICENSE_KEY_EXISTS'],
    },
    (call) => replaceLicenseKey(call, call.params.id, call.body?.key),
  ),
]
