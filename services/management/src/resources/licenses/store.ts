/** Adds, changes and deletes licenses. Additions use set-based statements. */

import {
  completePolicy,
  type CreateLicense,
  effectiveEntitlements,
  type License,
  newPolicyError,
  policyError,
  storedEntitlements,
  type updateLicense,
  withJsonText,
} from '@keyward/contract'
import { uuidv7, violatedConstraint } from '@keyward/database'
import { together } from '@keyward/database/kysely'
import { sql } from 'kysely'
import type { z } from 'zod'

import { recordLicenseActivity } from '../../activity/writer.ts'
import { audit, valuesBefore } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { differences } from '../../crud/differences.ts'
import { deleteRow, missingIds, type OwnedRows, updateRow } from '../../crud/owned-rows.ts'
import { ApiError, invalid, invalidRequest, type ValidationError } from '../../http/problem.ts'
import { requireMachinesWithinQuota, requireWithinQuota } from '../../quotas/quotas.ts'
import { deletedRules } from '../access-rules/cascade.ts'
import { excessiveEntitlements } from '../products/entitlements.ts'
import { requireFeatures } from './features.ts'
import { generateLicenseKey } from './key.ts'
import { type LicenseRow, lockLicenseRow, readLicenseRow, showLicense } from './license-rows.ts'
import { termsOf, templatesById } from './template-rows.ts'
import { type TemplateValues, valuesMoved } from './template-values.ts'

/** The error for each constraint that makes a field unique in the organization. */
const CONFLICTS: Readonly<Record<string, { code: 'LICENSE_KEY_EXISTS' | 'EXTERNAL_ID_EXISTS' }>> = {
  licenses_organization_id_key_key: { code: 'LICENSE_KEY_EXISTS' },
  licenses_external_id: { code: 'EXTERNAL_ID_EXISTS' },
}

/** Returns an error for every reference to a product or customer that does not exist in the organization. */
export async function missingParents(
  context: ReadContext,
  rows: readonly { productId: string; customerId: string; pointer: string }[],
): Promise<ValidationError[]> {
  const [products, customers] = await together(
    missingIds(
      'products',
      context,
      rows.map((row) => row.productId),
    ),
    missingIds(
      'customers',
      context,
      rows.map((row) => row.customerId),
    ),
  )
  const error = (pointer: string, what: string): ValidationError => ({
    pointer,
    detail: `must be the id of a ${what} of this organization`,
  })
  return rows.flatMap(({ productId, customerId, pointer }) => [
    ...(products.has(productId) ? [error(`${pointer}/productId`, 'product')] : []),
    ...(customers.has(customerId) ? [error(`${pointer}/customerId`, 'customer')] : []),
  ])
}

/** Throws INVALID_REQUEST when the effective entitlements of a license would be too long. */
async function requireEntitlementsFit(
  context: WriteContext,
  license: { productId: string; entitlements: string | null },
): Promise<void> {
  const errors = await excessiveEntitlements(context, entitled([{ ...license, pointer: '#' }]))
  if (errors.length > 0) throw invalidRequest(errors)
}

async function requireParents(context: ReadContext, ids: { productId: string; customerId: string }): Promise<void> {
  const errors = await missingParents(context, [{ ...ids, pointer: '#' }])
  if (errors.length > 0) throw invalidRequest(errors)
}

/** Returns the licenses that override entitlements, for `excessiveEntitlements`. */
export function entitled<Row extends { entitlements: string | null }>(licenses: readonly Row[]) {
  return licenses.flatMap((license) => {
    const { entitlements } = license
    return entitlements === null ? [] : [{ ...license, entitlements }]
  })
}

/** A license to insert. Its JSON members are text, as they are stored. */
export interface NewLicense {
  id: string
  templateId: string | null
  externalId: string | null
  productId: string
  customerId: string
  key: string
  policy: ReturnType<typeof completePolicy>
  metadata: string
  entitlements: string | null
  status: LicenseRow['status']
}

/** A license as it was given, with its JSON members as text, and the pointer to it in the request. */
interface GivenLicense {
  input: ReturnType<typeof withJsonText> & { status?: LicenseRow['status'] | undefined }
  pointer: string
}

interface CompletedLicenses {
  rows: (NewLicense & { pointer: string })[]
  errors: ValidationError[]
}

/**
 * Returns the licenses completed with the values of their templates, and an error for every license with a wrong reference or policy, or
 * with entitlements that are too long.
 */
export async function newLicenses(context: WriteContext, given: readonly GivenLicense[]): Promise<CompletedLicenses> {
  const { rows, errors } = await completeLicenses(context, given)
  return { rows, errors: [...errors, ...(await wrongReferences(context, rows))] }
}

/** Returns the errors of references to products and customers, and of entitlements that are too long. */
async function wrongReferences(context: WriteContext, rows: CompletedLicenses['rows']): Promise<ValidationError[]> {
  const errors = await together(missingParents(context, rows), excessiveEntitlements(context, entitled(rows)))
  return errors.flat()
}

/** Throws INVALID_REQUEST with `errors` and those of `wrongReferences`. */
async function requireReferences(
  context: WriteContext,
  rows: CompletedLicenses['rows'],
  errors: readonly ValidationError[],
): Promise<void> {
  const all = [...errors, ...(await wrongReferences(context, rows))]
  if (all.length > 0) throw invalidRequest(all)
}

async function completeLicenses(context: WriteContext, given: readonly GivenLicense[]): Promise<CompletedLicenses> {
  const templates = await templatesById(
    context,
    given.flatMap(({ input }) => input.templateId ?? []),
  )
  const errors: ValidationError[] = []
  const rows: CompletedLicenses['rows'] = []
  for (const { input, pointer } of given) {
    const { templateId = null, externalId = null, customerId, key = generateLicenseKey(), status = 'active' } = input
    const template = templateId === null ? null : templates.get(templateId)
    const productId = input.productId ?? template?.productId ?? ''
    if (template === undefined || (template !== null && productId !== template.productId)) {
      const what = input.productId === undefined ? 'this organization' : 'the product'
      errors.push({ pointer: `${pointer}/templateId`, detail: `must be the id of a template of ${what}` })
      continue
    }
    const policy = completePolicy(input.policy ?? {}, template && termsOf(template))
    const error = newPolicyError(policy)
    if (error !== null) errors.push({ pointer: `${pointer}/policy/${error.field}`, detail: error.detail })
    const own = input.entitlements === undefined ? textOf(template?.entitlements ?? null) : input.entitlements
    const metadata = input.metadata ?? JSON.stringify(template?.metadata ?? {})
    rows.push({
      id: uuidv7(),
      templateId,
      externalId,
      productId,
      customerId,
      key,
      policy,
      metadata,
      entitlements: own,
      status,
      pointer,
    })
  }
  return { rows, errors }
}

function textOf(value: object | null): string | null {
  return value && JSON.stringify(value)
}

/** The number of characters of JSON after which a statement gets no further row. Serializing more at once would delay other requests. */
const MAX_STATEMENT_CHARACTERS = 256 * 1024

/** Divides the rows among statements, in their order. */
function* parts(rows: readonly NewLicense[]): Generator<NewLicense[]> {
  let part: NewLicense[] = []
  let characters = 0
  for (const row of rows) {
    part.push(row)
    characters += row.metadata.length + (row.entitlements?.length ?? 0)
    if (characters < MAX_STATEMENT_CHARACTERS) continue
    yield part
    part = []
    characters = 0
  }
  if (part.length > 0) yield part
}

/** Inserts the licenses. Throws VALIDATORS_OUTDATED, or LICENSE_KEY_EXISTS when a license with one of the keys exists. */
export async function insertLicenses(context: WriteContext, rows: readonly NewLicense[]): Promise<void> {
  await requireFeatures(
    context,
    rows.map(({ policy }) => policy),
  )
  for (const part of parts(rows)) await insertPart(context, part)
}

async function insertPart({ db, organizationId }: WriteContext, rows: readonly NewLicense[]): Promise<void> {
  const column = <Value>(pick: (row: NewLicense) => Value): Value[] => rows.map(pick)
  await sql`
    insert into licenses (id, organization_id, product_id, customer_id, template_id, external_id, key, policy_type, max_machines, expires_at,
      duration_days, max_releases, lease_seconds, grace_days, file_days, metadata, entitlements, status, suspended_at, revoked_at)
    select n.id, ${organizationId}, n.product_id, n.customer_id, n.template_id, n.external_id, n.key, n.policy_type, n.max_machines, n.expires_at,
      n.duration_days, n.max_releases, n.lease_seconds, n.grace_days, n.file_days, n.metadata, n.entitlements, n.status,
      case n.status when 'suspended' then now() end, case n.status when 'revoked' then now() end
    from unnest(
      ${column((row) => row.id)}::uuid[], ${column((row) => row.productId)}::uuid[], ${column((row) => row.customerId)}::uuid[],
      ${column((row) => row.templateId)}::uuid[], ${column((row) => row.externalId)}::text[],
      ${column((row) => row.key)}::text[], ${column((row) => row.policy.type)}::text[],
      ${column((row) => row.policy.maxMachines)}::integer[], ${column((row) => row.policy.expiresAt)}::timestamptz[],
      ${column((row) => row.policy.durationDays)}::integer[], ${column((row) => row.policy.maxReleases)}::integer[],
      ${column((row) => row.policy.leaseSeconds)}::integer[], ${column((row) => row.policy.graceDays)}::integer[],
      ${column((row) => row.policy.fileDays)}::integer[],
      ${column((row) => row.metadata)}::jsonb[], ${column((row) => row.entitlements)}::jsonb[],
      ${column((row) => row.status)}::text[]
    ) as n (id, product_id, customer_id, template_id, external_id, key, policy_type, max_machines, expires_at, duration_days, max_releases,
      lease_seconds, grace_days, file_days, metadata, entitlements, status)`
    .execute(db)
    .catch((error: unknown) => {
      const conflict = CONFLICTS[violatedConstraint(error)]
      throw conflict ? new ApiError(conflict.code) : error
    })
}

/** Throws QUOTA_EXCEEDED unless licenses with these machine limits may be added. */
export async function requireLicensesWithinQuotas(
  context: WriteContext,
  maxMachines: readonly (number | null)[],
): Promise<void> {
  await together(
    requireMachinesWithinQuota(context, maxMachines),
    requireWithinQuota(context, 'licenses', maxMachines.length),
  )
}

export async function addLicense(context: WriteContext, input: CreateLicense): Promise<License> {
  const { rows, errors } = await completeLicenses(context, [{ input: withJsonText(input), pointer: '#' }])
  const [row] = rows
  if (row === undefined) throw invalidRequest(errors)
  await together(
    requireReferences(context, rows, errors),
    requireLicensesWithinQuotas(context, [row.policy.maxMachines]),
    requireFeatures(context, [row.policy]),
  )
  const [, inserted] = await together(insertPart(context, [row]), readLicenseRow(context, row.id))
  const license = showLicense(inserted)
  await audit(context, {
    action: 'license.created',
    resourceType: 'license',
    resourceId: row.id,
    changes: input,
    event: { type: 'license.created', resource: license },
  })
  await recordLicenseActivity(context, 'LICENSE_CREATED', [row.id])
  return license
}

export const licenseRows: OwnedRows<'licenses', string> = {
  table: 'licenses',
  type: 'license',
  show: ({ id }) => id,
  conflicts: CONFLICTS,
}

/**
 * Returns the stored policy with the given fields merged into it. Throws INVALID_REQUEST unless the result is valid. A new `durationDays`
 * requires that `expiresAt` is null, because a license with an expiry starts no term.
 */
function mergedPolicy(row: LicenseRow, given: z.output<typeof updateLicense>['policy'] = {}) {
  const { type = row.policyType, maxMachines = row.maxMachines, expiresAt = row.expiresAt } = given
  const { durationDays = row.durationDays, maxReleases = row.maxReleases, leaseSeconds = row.leaseSeconds } = given
  const { graceDays = row.graceDays, fileDays = row.fileDays } = given
  const error = policyError({ type, expiresAt, durationDays })
  if (error !== null) throw invalid(`#/policy/${error.field}`, error.detail)
  if (durationDays !== null && durationDays !== row.durationDays && expiresAt !== null)
    throw invalid(
      '#/policy/durationDays',
      'requires that #/policy/expiresAt is null, because a license with an expiry starts no term',
    )
  return { policyType: type, maxMachines, expiresAt, durationDays, maxReleases, leaseSeconds, graceDays, fileDays }
}

const POLICY_FIELDS = new Set([
  'policyType',
  'maxMachines',
  'expiresAt',
  'durationDays',
  'maxReleases',
  'leaseSeconds',
  'graceDays',
  'fileDays',
])

/** Returns the values that a change replaces, as an object with the members of the PATCH request. */
function replacedValues(row: LicenseRow, changed: object): object {
  const policy: Record<string, unknown> = {}
  const fields: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(valuesBefore(row, changed))) {
    if (POLICY_FIELDS.has(name)) policy[name === 'policyType' ? 'type' : name] = value
    else fields[name] = value
  }
  return { ...fields, ...(Object.keys(policy).length > 0 && { policy }) }
}

/**
 * Returns the values of a license that a move to another template changes: those that still equal a value of its present template
 * (docs/api.md#m17). Throws INVALID_REQUEST unless the template belongs to the product.
 */
async function movedTo(
  context: WriteContext,
  row: LicenseRow,
  { productId, templateId }: { productId: string; templateId: string | null },
): Promise<Partial<TemplateValues>> {
  if (templateId === null) return {}
  if (templateId === row.templateId) return {}
  const templates = await templatesById(context, [templateId, ...(row.templateId === null ? [] : [row.templateId])])
  const template = templates.get(templateId)
  if (template?.productId !== productId)
    throw invalid('#/templateId', 'must be the id of a template of the product, or null')
  const present = row.templateId === null ? undefined : templates.get(row.templateId)
  return present === undefined ? {} : valuesMoved(row, present, template)
}

/**
 * Changes the given fields of a license. The given fields of the policy are merged into the stored policy, and the merged policy must be valid
 * (docs/api.md#m7).
 */
export async function changeLicense(
  context: WriteContext,
  id: string,
  input: z.output<typeof updateLicense>,
): Promise<License> {
  const row = await lockLicenseRow(context, id)
  const { productId = row.productId, customerId = row.customerId } = input
  // A license that moves to another product has no template unless the request names one.
  const { templateId = productId === row.productId ? row.templateId : null } = input
  await requireParents(context, { productId, customerId })
  const moved = await movedTo(context, row, { productId, templateId })
  const policy = mergedPolicy({ ...row, ...moved }, input.policy)
  const { metadata = moved.metadata } = input
  const entitlements = input.entitlements === undefined ? moved.entitlements : storedEntitlements(input.entitlements)
  const { externalId } = input
  const changed = differences(row, { productId, customerId, externalId, templateId, ...policy, entitlements, metadata })
  if (changed === null) return showLicense(row)
  if (changed.productId !== undefined || changed.entitlements !== undefined) {
    const own = entitlements === undefined ? row.entitlements : entitlements
    await requireEntitlementsFit(context, { productId, entitlements: own && JSON.stringify(own) })
  }
  if (changed.maxMachines !== undefined) await requireMachinesWithinQuota(context, [policy.maxMachines])
  await requireFeatures(context, [policy])
  await updateRow(licenseRows, context, id, { ...changed, updatedAt: new Date() })
  const license = showLicense(await readLicenseRow(context, id))
  const event = { type: 'license.updated', resource: license, before: showLicense(row) } as const
  const before = replacedValues(row, changed)
  const action = 'license.changed'
  await audit(context, { action, resourceType: 'license', resourceId: id, changes: input, before, event })
  await recordLicenseActivity(context, 'LICENSE_CHANGED', [id])
  return license
}

/** Returns the effective entitlements of a license, and the defaults and overrides from which they are computed (docs/api.md#v13). */
export async function readEntitlements(context: ReadContext, id: string) {
  const { productId, entitlements } = await readLicenseRow(context, id)
  const product = await context.db
    .selectFrom('products')
    .select('entitlements')
    .where('organizationId', '=', context.organizationId)
    .where('id', '=', productId)
    .executeTakeFirst()
  const defaults = product?.entitlements ?? {}
  const overrides = entitlements ?? {}
  return { effective: effectiveEntitlements(defaults, overrides), defaults, overrides }
}

/** Deletes a license with its machines, its alerts and the access rules of its scope (docs/api.md#m9). */
export async function deleteLicense(context: WriteContext, id: string): Promise<void> {
  const license = showLicense(await lockLicenseRow(context, id))
  await deleteRow(licenseRows, context, id, {
    audited: () => license,
    cascade: deletedRules('licenseId'),
    event: async () => ({ type: 'license.deleted', resource: license }),
  })
}
