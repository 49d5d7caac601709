/** Defines the endpoints of organizations. The operator manages all of them, and a vendor reads its own. */

import { organizations as operations } from '@keyward/contract'
import { BASE_PATH } from '@keyward/contract/operations'

import { requireMail, requirePortalMail } from '../../mails/outbox.ts'
import { implement } from '../../operations/implement.ts'
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

export const organizations = implement(tag, operations, {
  listOrganizations: { summary: 'List organizations', handle: ({ db, query }) => listOrganizations(db, query) },
  createOrganization: {
    summary: 'Create an organization',
    description:
      'Also creates a signing key, a management token with every permission and an API key. Only this response contains the two secrets.',
    handle: (call) => addOrganization(call, call.dependencies.keyring, call.body),
  },
  readOrganization: { summary: 'Read an organization', handle: ({ db, params }) => readOrganization(db, params.id) },
  updateOrganization: {
    summary: 'Change an organization',
    description: 'A lower plan or quota applies to additions only. Existing resources stay unchanged.',
    handle: (call) => changeOrganization(call, call.params.id, call.body),
  },
  deleteOrganization: {
    summary: 'Delete an organization',
    errors: ['IN_USE'],
    handle: (call) => deleteOrganization(call, call.params.id),
  },
  suspendOrganization: {
    summary: 'Suspend an organization',
    description:
      'Management tokens, personal access tokens and sessions of the organization get 403 `ORGANIZATION_SUSPENDED`. Checks and license files for apps continue.',
    handle: (call) => setSuspended(call, call.params.id, true),
  },
  reinstateOrganization: {
    summary: 'Reinstate a suspended organization',
    handle: (call) => setSuspended(call, call.params.id, false),
  },
  createRecoveryToken: {
    summary: 'Create a management token for an organization that has lost its own',
    description:
      'The token has every permission. The quota does not apply. Only this response contains the secret. The audit log of the organization has an entry for the token.',
    async handle(call) {
      const created = await addRecoveryToken(call, call.params.id, call.body)
      call.headers['location'] = `${BASE_PATH}/tokens/${created.id}`
      return created
    },
  },
  updateOwnOrganization: {
    summary: 'Change the settings of your own organization',
    errors: ['NOT_ENABLED'],
    async handle(call) {
      const { mailKeys = false, mailEndingDays = null, mailPortal = false } = call.body
      if (mailKeys || mailEndingDays !== null || mailPortal) requireMail(call.dependencies)
      if (mailPortal) requirePortalMail(call.dependencies)
      await changeOrganization(call, call.organizationId, call.body)
      return readOwnOrganization(call, call.dependencies)
    },
  },
  readOwnOrganization: {
    summary: 'Read your own organization',
    handle: (call) => readOwnOrganization(call, call.dependencies),
  },
})
