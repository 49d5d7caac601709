/** Defines the endpoints of organizations. The operator manages all of them, and a vendor reads its own. */

import {
  createdOrganization,
  createdToken,
  createOrganization,
  createRecoveryToken,
  idParams,
  listQuery,
  organization,
  organizationDetails,
  organizationFilter,
  ownOrganization,
  page,
  updateOrganization,
} from '@keyward/contract'

import { BASE_PATH, operatorEndpoint, vendorEndpoint } from '../../http/endpoint.ts'
import {
  addOrganization,
  addRecoveryToken,
  changeOrganization,
  deleteOrganization,
  listOrganizations,
  readOrganization,
  readOwnOrganization,
  setSuspended,
} from './store.ts'

const tag = {
  name: 'Organizations',
  description: 'Vendors. The operator manages all of them; a vendor can read its own.',
}
const path = '/organizations'
const one = { tag, path: `${path}/{id}`, params: idParams } as const

export const organizations = [
  operatorEndpoint(
    {
      method: 'get',
      path,
      tag,
      operationId: 'listOrganizations',
      summary: 'List organizations',
      query: listQuery(organizationFilter),
      status: 200,
      response: page(organization),
    },
    ({ db, query }) => listOrganizations(db, query),
  ),
  operatorEndpoint(
    {
      method: 'post',
      path,
      tag,
      operationId: 'createOrganization',
      summary: 'Create an organization',
      description:
        'Also creates a signing key, a management token with every permission and an API key. Only this response contains the two secrets.',
      body: createOrganization,
      status: 201,
      response: createdOrganization,
      secrets: ['managementToken', 'apiKey'],
      propagates: true,
    },
    async (call) => {
      const created = await addOrganization(call, call.dependencies.keyring, call.body)
      call.headers['location'] = `${BASE_PATH}${path}/${created.id}`
      return created
    },
  ),
  operatorEndpoint(
    {
      ...one,
      method: 'get',
      operationId: 'readOrganization',
      summary: 'Read an organization',
      status: 200,
      response: organizationDetails,
    },
    ({ db, params }) => readOrganization(db, params.id),
  ),
  operatorEndpoint(
    {
      ...one,
      method: 'patch',
      operationId: 'updateOrganization',
      summary: 'Change an organization',
      description: 'A lower plan or quota applies to additions only. Existing resources stay unchanged.',
      body: updateOrganization,
      status: 200,
      response: organizationDetails,
    },
    (call) => changeOrganization(call, call.params.id, call.body),
  ),
  operatorEndpoint(
    {
      ...one,
      method: 'delete',
      operationId: 'deleteOrganization',
      summary: 'Delete an organization',
      status: 204,
      errors: ['IN_USE'],
      propagates: true,
    },
    (call) => deleteOrganization(call, call.params.id),
  ),
  operatorEndpoint(
    {
      ...one,
      path: `${path}/{id}/suspend`,
      method: 'post',
      operationId: 'suspendOrganization',
      summary: 'Suspend an organization',
      description:
        'Management tokens, personal access tokens and sessions of the organization get 403 `ORGANIZATION_SUSPENDED`. Checks and license files for apps continue.',
      status: 200,
      response: organizationDetails,
    },
    (call) => setSuspended(call, call.params.id, true),
  ),
  operatorEndpoint(
    {
      ...one,
      path: `${path}/{id}/reinstate`,
      method: 'post',
      operationId: 'reinstateOrganization',
      summary: 'Reinstate a suspended organization',
      status: 200,
      response: organizationDetails,
    },
    (call) => setSuspended(call, call.params.id, false),
  ),
  operatorEndpoint(
    {
      ...one,
      path: `${path}/{id}/recovery-token`,
      method: 'post',
      operationId: 'createRecoveryToken',
      summary: 'Create a management token for an organization that has lost its own',
      description:
        'The token has every permission. The quota does not apply. Only this response contains the secret. The audit log of the organization has an entry for the token.',
      body: createRecoveryToken,
      status: 201,
      response: createdToken,
      secrets: ['secret'],
    },
    async (call) => {
      const created = await addRecoveryToken(call, call.params.id, call.body)
      call.headers['location'] = `${BASE_PATH}/tokens/${created.id}`
      return created
    },
  ),
  vendorEndpoint(
    'any',
    {
      method: 'get',
      path: '/organization',
      tag,
      operationId: 'readOwnOrganization',
      summary: 'Read your own organization',
      status: 200,
      response: ownOrganization,
    },
    ({ db, organizationId }) => readOwnOrganization(db, organizationId),
  ),
]
