/**
 * Enforces the limit of effective entitlements, 4 KiB as JSON (docs/api.md#v13). A license that is written is checked against the current
 * defaults of its product. New defaults are checked against all licenses of the product. A transaction that writes licenses with overrides
 * locks their products, so that the defaults do not change until it ends.
 */

import { effectiveEntitlements, entitlementsBytes, MAX_ENTITLEMENTS_BYTES } from '@keyward/contract'
import { sql } from 'kysely'

import type { WriteContext } from '../../context.ts'
import { invalid, type ValidationError } from '../../http/problem.ts'
import { requireValidatorsWith } from '../validators/features.ts'

/** The maximum number of licenses against which new defaults are checked. Checking this many takes a fraction of a second. */
const MAX_CHECKED = 20_000

/** A license that overrides entitlements and is about to be written. `entitlements` is JSON text. */
interface EntitledLicense {
  productId: string
  entitlements: string
  /** The JSON pointer to the license in the request, such as `#/licenses/17`. */
  pointer: string
}

/** Returns an error for every license whose effective entitlements would be too long. Locks the products against new defaults. */
export async function excessiveEntitlements(
  context: WriteContext,
  licenses: readonly EntitledLicense[],
): Promise<ValidationError[]> {
  if (licenses.length === 0) return []
  await requireSwitches(
    context,
    licenses.map(({ entitlements }) => membersOf(entitlements)),
  )
  const { db, organizationId } = context
  const products = await db
    .selectFrom('products')
    .select(['id', 'entitlements'])
    .where('organizationId', '=', organizationId)
    .where('id', '=', sql<string>`any(${[...new Set(licenses.map(({ productId }) => productId))]}::uuid[])`)
    .orderBy('id')
    .forShare()
    .execute()
  const defaults = new Map(products.map((row) => [row.id, row.entitlements ?? {}]))
  return licenses.flatMap(({ productId, entitlements, pointer }) => {
    const bytes = effectiveBytes(defaults.get(productId) ?? {}, entitlements)
    if (bytes <= MAX_ENTITLEMENTS_BYTES) return []
    const detail =
      `must be shorter: together with those of the product, the license would have ${bytes} bytes of entitlements ` +
      `as JSON; at most ${MAX_ENTITLEMENTS_BYTES} are allowed`
    return [{ pointer: `${pointer}/entitlements`, detail }]
  })
}

function effectiveBytes(defaults: Readonly<Record<string, unknown>>, entitlements: string): number {
  return entitlementsBytes(effectiveEntitlements(defaults, membersOf(entitlements)))
}

function membersOf(entitlements: string): Record<string, unknown> {
  const members: unknown = JSON.parse(entitlements)
  return { ...Object(members) }
}

/** Throws VALIDATORS_OUTDATED when a value is `false` and a validator is of a version that would send it to apps. */
export async function requireSwitches(context: WriteContext, entitlements: readonly object[]): Promise<void> {
  if (entitlements.some((members) => Object.values(members).includes(false)))
    await requireValidatorsWith(context, ['switches'])
}

/**
 * Throws INVALID_REQUEST when new defaults would make the effective entitlements of a license too long. The caller must have locked the
 * product. Licenses whose overrides are too short to exceed the limit are skipped. The other licenses are checked in descending order of
 * the length of their overrides.
 */
export async function requireDefaultsFit(
  { db, organizationId }: WriteContext,
  productId: string,
  defaults: object,
): Promise<void> {
  const { rows } = await sql<{ id: string; bytes: number; checked: number }>`
    with candidates as materialized (
      select id, coalesce((
        select jsonb_object_agg(name, value) from jsonb_each(${JSON.stringify(defaults)}::jsonb || entitlements) as m (name, value)
        where value not in ('null', 'false')), '{}') as effective from licenses
      where product_id = ${productId} and organization_id = ${organizationId} and entitlements is not null
        and octet_length(entitlements::text) > ${MAX_ENTITLEMENTS_BYTES - entitlementsBytes(defaults)}
      order by octet_length(entitlements::text) desc limit ${MAX_CHECKED + 1}
    )
    select id, bytes, count(*) over ()::integer as checked from (
      select id, octet_length(effective::text)
        - greatest(2 * (select count(*) from jsonb_object_keys(effective)) - 1, 0)::integer as bytes
      from candidates
    ) sized order by bytes desc limit 1`.execute(db)
  const [longest] = rows
  if (longest === undefined) return
  if (longest.bytes > MAX_ENTITLEMENTS_BYTES)
    throw invalid(
      '#/entitlements',
      `must be shorter: license ${longest.id} would have ${longest.bytes} bytes of entitlements as JSON; ` +
        `at most ${MAX_ENTITLEMENTS_BYTES} are allowed`,
    )
  if (longest.checked > MAX_CHECKED)
    throw invalid(
      '#/entitlements',
      `must be shorter: more than ${MAX_CHECKED} licenses of the product override entitlements with values so long ` +
        'that they cannot all be checked',
    )
}
