import { z } from 'zod'

import { MAX_LICENSE_KEY_BYTES, text } from '../text.ts'
import {
  countedPage,
  email,
  exportedRows,
  exportQuery,
  id,
  listQuery,
  MAX_METADATA_BODY_BYTES,
  metadataFilter,
  moment,
  totalRequest,
} from './common.ts'
import { importedLicense, importedLicenses, importLicenses, importOptions } from './license-import.ts'
import {
  createLicense,
  effectiveEntitlementsOfLicense,
  extendLicense,
  externalId,
  license,
  licenseStatus,
  reasoned,
  renewLicense,
  replaceLicenseKey,
  updateLicense,
} from './licenses.ts'
import { operations } from './operations.ts'

/** The conditions of a filter. All given ones must hold. */
export const licenseFilter = {
  productId: id('Returns only licenses of this product.').optional(),
  customerId: id('Returns only licenses of this customer.').optional(),
  templateId: id('Returns only licenses of this template.').optional(),
  externalId: externalId
    .optional()
    .meta({ description: 'Returns only the license with this external id.', example: 'shop-4711' }),
  status: licenseStatus.optional(),
  key: text(MAX_LICENSE_KEY_BYTES)
    .optional()
    .meta({ description: 'Returns only the license with exactly this key.', example: 'K7QF-2MXW-9RTB-HD4C' }),
  keyPrefix: text(MAX_LICENSE_KEY_BYTES)
    .refine((value) => value.trim() !== '', 'must not be blank')
    .optional()
    .meta({
      description: 'Returns only licenses whose key begins with this text; case and spaces are ignored.',
      example: 'k7qf',
    }),
  email: email.optional().meta({
    description: 'Returns only licenses of customers with this e-mail address; case is ignored.',
    example: 'ada@example.com',
  }),
  expiresAfter: moment(
    'Returns only licenses that expire at this time or later. A license without an expiry is left out.',
  ).optional(),
  expiresBefore: moment('Returns only licenses that expire before this time.').optional(),
  metadata: metadataFilter,
}

const licenseSort = z.enum(['createdAt', 'expiresAt']).optional().meta({
  description:
    'The field that determines the order; default `createdAt`. A license without an expiry is the latest to expire.',
  example: 'expiresAt',
})
export type LicenseSort = NonNullable<z.infer<typeof licenseSort>>
const licenseSorting = {
  sort: licenseSort,
  order: z
    .enum(['asc', 'desc'])
    .optional()
    .meta({ description: 'Default: `desc` for `createdAt`, `asc` for `expiresAt`.', example: 'asc' }),
}

export const licenses = operations({
  listLicenses: {
    route: 'GET /licenses',
    needs: 'licenses.read',
    query: listQuery({ ...licenseFilter, ...licenseSorting, ...totalRequest }),
    returns: countedPage(license),
  },
  createLicense: {
    route: 'POST /licenses',
    needs: 'licenses.write',
    body: createLicense,
    returns: license,
    creates: true,
    maxBodyBytes: MAX_METADATA_BODY_BYTES,
    propagates: true,
  },
  importLicenses: {
    route: 'POST /licenses/import',
    needs: 'licenses.write',
    body: importLicenses,
    rows: { name: 'licenses', row: importedLicense, maxRowBytes: MAX_METADATA_BODY_BYTES, others: importOptions },
    maxBodyBytes: 50 * 1024 * 1024,
    returns: importedLicenses,
    propagates: true,
  },
  exportLicenses: {
    route: 'GET /licenses/export',
    needs: 'licenses.read',
    query: exportQuery(licenseFilter),
    returns: exportedRows,
    file: 'text/csv',
  },
  readLicense: { route: 'GET /licenses/{id}', needs: 'licenses.read', returns: license },
  readLicenseEntitlements: {
    route: 'GET /licenses/{id}/entitlements',
    needs: 'licenses.read',
    returns: effectiveEntitlementsOfLicense,
  },
  updateLicense: {
    route: 'PATCH /licenses/{id}',
    needs: 'licenses.write',
    body: updateLicense,
    returns: license,
    maxBodyBytes: MAX_METADATA_BODY_BYTES,
    propagates: true,
  },
  deleteLicense: { route: 'DELETE /licenses/{id}', needs: 'licenses.write', propagates: true },
  suspendLicense: {
    route: 'POST /licenses/{id}/suspend',
    needs: 'licenses.write',
    body: reasoned.optional(),
    returns: license,
    propagates: true,
  },
  reinstateLicense: {
    route: 'POST /licenses/{id}/reinstate',
    needs: 'licenses.write',
    returns: license,
    propagates: true,
  },
  revokeLicense: {
    route: 'POST /licenses/{id}/revoke',
    needs: 'licenses.write',
    body: reasoned.optional(),
    returns: license,
    propagates: true,
  },
  renewLicense: {
    route: 'POST /licenses/{id}/renew',
    needs: 'licenses.write',
    body: renewLicense,
    returns: license,
    propagates: true,
  },
  extendLicense: {
    route: 'POST /licenses/{id}/extend',
    needs: 'licenses.write',
    body: extendLicense,
    returns: license,
    propagates: true,
  },
  replaceLicenseKey: {
    route: 'POST /licenses/{id}/replace-key',
    needs: 'licenses.write',
    body: replaceLicenseKey.optional(),
    returns: license,
    propagates: true,
  },
})
