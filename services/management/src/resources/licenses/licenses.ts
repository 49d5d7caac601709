import { type License, licenses as operations } from '@keyward/contract'
import { NULL_CELL } from '@keyward/contract/management/license-cells'

import { type Columns, columnsOf, exportList } from '../../crud/export.ts'
import { implement } from '../../operations/implement.ts'
import { actOnLicense, replaceLicenseKey } from './actions.ts'
import { importLicenses } from './import.ts'
import { readLicenseRow, showLicense } from './license-rows.ts'
import { listLicenses } from './list.ts'
import { addLicense, changeLicense, deleteLicense, readEntitlements } from './store.ts'

const COLUMNS: Columns<License> = {
  ...columnsOf<License>('id', 'key', 'status', 'productId', 'customerId', 'externalId', 'templateId'),
  type: ({ policy }) => policy.type,
  expiresAt: ({ policy }) => policy.expiresAt,
  durationDays: ({ policy }) => policy.durationDays ?? NULL_CELL,
  maxMachines: ({ policy }) => policy.maxMachines ?? NULL_CELL,
  leaseSeconds: ({ policy }) => policy.leaseSeconds ?? NULL_CELL,
  maxReleases: ({ policy }) => policy.maxReleases ?? NULL_CELL,
  graceDays: ({ policy }) => policy.graceDays,
  fileDays: ({ policy }) => policy.fileDays ?? NULL_CELL,
  usedMachines: ({ machines }) => machines.used,
  ...columnsOf<License>(
    'graceEndsAt',
    'entitlements',
    'metadata',
    'createdAt',
    'updatedAt',
    'suspendedAt',
    'revokedAt',
  ),
}

const tag = {
  name: 'Licenses',
  description: 'The right of a customer to use a product: active, suspended, expired or revoked.',
}
const description = 'Repeating the request changes nothing.'

export const licenses = implement(tag, operations, {
  listLicenses: { summary: 'List licenses', handle: (call) => listLicenses(call, call.query) },
  exportLicenses: {
    summary: 'Export licenses',
    description: 'Streams all items of the filter as CSV or JSON lines, in the order of the list.',
    handle: (call) =>
      exportList(call, { name: 'licenses', resourceType: 'license', columns: COLUMNS }, (page) =>
        listLicenses(call, { ...call.query, ...page }),
      ),
  },
  createLicense: {
    summary: 'Create a license',
    description: 'Without `key`, the license gets a generated one.',
    errors: ['LICENSE_KEY_EXISTS', 'EXTERNAL_ID_EXISTS', 'VALIDATORS_OUTDATED'],
    handle: (call) => addLicense(call, call.body),
  },
  importLicenses: {
    summary: 'Import licenses',
    description:
      'Adds all rows, at most 1,000, or none, with their status and their machines. An error response lists every invalid row. With ' +
      '`skipExisting`, the request can be repeated, because rows that exist are skipped.',
    errors: ['IMPORT_TOO_LARGE', 'LICENSE_KEY_EXISTS', 'EXTERNAL_ID_EXISTS', 'VALIDATORS_OUTDATED'],
    handle: (call) => importLicenses(call, call.body),
  },
  readLicense: {
    summary: 'Read a license',
    handle: async (call) => showLicense(await readLicenseRow(call, call.params.id)),
  },
  readLicenseEntitlements: {
    summary: 'Read the effective entitlements of a license',
    description: 'Returns what apps receive, and the values from which it is computed.',
    handle: (call) => readEntitlements(call, call.params.id),
  },
  updateLicense: {
    summary: 'Change a license',
    description:
      'Merges the given fields of the policy into the stored policy. The merged policy must be valid. ' +
      'Machines keep their slots when the limit falls below their number.',
    errors: ['EXTERNAL_ID_EXISTS', 'VALIDATORS_OUTDATED'],
    handle: (call) => changeLicense(call, call.params.id, call.body),
  },
  deleteLicense: {
    summary: 'Delete a license',
    description: 'Also deletes the machines and alerts of the license, and the access rules of its scope.',
    handle: (call) => deleteLicense(call, call.params.id),
  },
  suspendLicense: {
    summary: 'Suspend a license',
    description,
    errors: ['LICENSE_REVOKED'],
    handle: (call) => actOnLicense(call, call.params.id, { type: 'suspend', ...call.body }),
  },
  reinstateLicense: {
    summary: 'Reinstate a suspended license',
    description,
    errors: ['LICENSE_REVOKED'],
    handle: (call) => actOnLicense(call, call.params.id, { type: 'reinstate' }),
  },
  revokeLicense: {
    summary: 'Revoke a license permanently',
    description,
    handle: (call) => actOnLicense(call, call.params.id, { type: 'revoke', ...call.body }),
  },
  renewLicense: {
    summary: 'Renew a license',
    description:
      'Moves the expiry. An expired license becomes active again. An earlier expiry requires `allowEarlier`.',
    errors: ['LICENSE_REVOKED'],
    handle: (call) => actOnLicense(call, call.params.id, { type: 'renew', ...call.body }),
  },
  extendLicense: {
    summary: 'Extend a license',
    description:
      'Adds days to the expiry, or to the current time if the license and its grace period have ended. A term that has not ' +
      'started becomes longer. Repeating the request adds the days again, unless it has the same `Idempotency-Key`.',
    errors: ['LICENSE_REVOKED'],
    handle: (call) => actOnLicense(call, call.params.id, { type: 'extend', days: call.body.days }),
  },
  replaceLicenseKey: {
    summary: 'Replace the key of a license',
    description:
      'Replaces the key of the license, for example because the old one has leaked. Without `key`, a key is generated. ' +
      'Everything else stays unchanged. Checks with the old key get `NOT_FOUND`.',
    errors: ['LICENSE_REVOKED', 'LICENSE_KEY_EXISTS'],
    handle: (call) => replaceLicenseKey(call, call.params.id, call.body?.key),
  },
})
