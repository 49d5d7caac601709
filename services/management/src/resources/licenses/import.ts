/** Imports licenses in a few set-based statements: all rows or none. An error lists every invalid row. */

import type { importedLicense } from '@keyward/contract'
import { sql } from 'kysely'
import type { z } from 'zod'

import { recordLicenseActivity } from '../../activity/writer.ts'
import { audit, listOf } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { writeEvents } from '../../events/writer.ts'
import { ApiError, type ValidationError } from '../../http/problem.ts'
import { invalidRows, type Row, type Rows } from '../../http/upload-rows.ts'
import { selectLicenses, showLicense } from './license-rows.ts'
import { insertLicenses, type NewLicense, newLicenses, requireLicensesWithinQuotas } from './store.ts'

type ImportedLicense = z.output<typeof importedLicense>
type LicenseRows = readonly Row<ImportedLicense>[]

function duplicateKeys(rows: LicenseRows): ValidationError[] {
  const seen = new Set<string>()
  return rows.flatMap(({ input: { key }, pointer }) => {
    if (key === undefined) return []
    if (seen.has(key)) return [{ pointer: `${pointer}/key`, detail: 'is also the key of an earlier row' }]
    seen.add(key)
    return []
  })
}

async function existingKeys({ db, organizationId }: ReadContext, rows: LicenseRows): Promise<ValidationError[]> {
  const keys = rows.flatMap(({ input }) => input.key ?? [])
  const found = await db
    .selectFrom('licenses')
    .select('key')
    .where('organizationId', '=', organizationId)
    .where('key', '=', sql<string>`any(${keys}::text[])`)
    .execute()
  const existing = new Set(found.map((row) => row.key))
  return rows.flatMap(({ input: { key }, pointer }) =>
    key !== undefined && existing.has(key)
      ? [{ pointer: `${pointer}/key`, detail: 'is the key of an existing license' }]
      : [],
  )
}

/** Returns the licenses to insert. Throws INVALID_REQUEST with every invalid row, or LICENSE_KEY_EXISTS when existing keys are the only errors. */
async function requireValid(context: WriteContext, given: Rows<ImportedLicense>): Promise<NewLicense[]> {
  const { rows, errors } = await newLicenses(context, given.rows)
  const invalid = [...given.errors, ...errors, ...duplicateKeys(given.rows)]
  const existing = await existingKeys(context, given.rows)
  if (invalid.length > 0) throw invalidRows([...invalid, ...existing])
  if (existing.length === 0) return rows
  const count = existing.length === 1 ? 'A license with this key exists' : `Licenses with ${existing.length} keys exist`
  throw new ApiError('LICENSE_KEY_EXISTS', `${count}. Remove the rows listed in errors or give them other keys.`, {
    errors: existing,
  })
}

/** Writes the event `license.created` for each license. */
async function writeCreated(context: WriteContext, part: readonly NewLicense[]): Promise<void> {
  const { db, organizationId, actor } = context
  const ids = part.map(({ id }) => id)
  const created = await selectLicenses(context).where('licenses.id', 'in', ids).orderBy('licenses.id').execute()
  const events = created.map(
    (row) => ({ type: 'license.created', resource: showLicense(row), organizationId, actor }) as const,
  )
  await writeEvents(db, events)
}

export async function importLicenses(context: WriteContext, given: Rows<ImportedLicense>) {
  const rows = await requireValid(context, given)
  await requireLicensesWithinQuotas(
    context,
    rows.map(({ policy }) => policy.maxMachines),
  )
  await insertLicenses(context, rows, (part) => writeCreated(context, part))
  const ids = rows.map((row) => row.id)
  const changes = { created: rows.length, ids, licenses: listOf(rows) }
  await audit(context, { action: 'license.imported', resourceType: 'license', resourceId: null, changes })
  await recordLicenseActivity(context, 'LICENSE_CREATED', ids)
  return { created: rows.length, licenses: rows.map(({ id, key }) => ({ id, key })) }
}
