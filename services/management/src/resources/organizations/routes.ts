/** Endpoints of organizations: all of them for the operator, its own for a vendor. */
import {
  createdOrganization,
  createOrganization,
  idParams,
  listQuery,
  organization,
  organizationFilter,
  ownOrganization,
  page,
  updateOrganization,
} from '@keyward/contract'

import { operatorEndpoint, vendorEndpoint } from '../../http/endpoint.ts'
import { basePath } from '../../http/paths.ts'
import {
  addOrganization,
  changeOrganization,
  deleteOrganization,
  listOrganizations,
  readOrganization,
  readOwnOrganization,
} from './store.ts'

const tag = 'Organizations'
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
      answer: page(organization),
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
        'Makes its signing key, a management token with every permission and an API key; both secrets are shown once.',
      body: createOrganization,
      status: 201,
      answer: createdOrganization,
      secrets: ['managementToken', 'apiKey'],
      propagates: true,
    },
    async (call) => {
      const created = await addOrganization(call, call.services.keyring, call.body)
      call.headers['location'] = `${basePath}${path}/${created.id}`
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
      answer: organization,
    },
    ({ db, params }) => readOrganization(db, params.id),
  ),
  operatorEndpoint(
    {
      ...one,
      method: 'patch',
      operationId: 'updateOrganization',
      summary: 'Change an organization',
      description: 'A lower plan takes nothing away: existing access rules go on working.',
      body: updateOrganization,
      status: 200,
      answer: organization,
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
  vendorEndpoint(
    'any',
    {
      method: 'get',
      path: '/organization',
      tag,
      operationId: 'readOwnOrganization',
      summary: 'Read your own organization',
      status: 200,
      answer: ownOrganization,
    },
    ({ db, organizationId }) => readOwnOrganization(db, organizationId),
  ),
]
