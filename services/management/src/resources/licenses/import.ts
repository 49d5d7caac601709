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

/** The fields that are unique in the organization. */
const UNIQUE = [
  { field: 'key', column: 'key', name: 'the key' },
  { field: 'externalId', column: 'external_id', name: 'the external id' },
] as const

function duplicates(rows: LicenseRows): ValidationError[] {
  return UNIQUE.flatMap(({ field, name }) => {
    const seen = new Set<string>()
    return rows.flatMap(({ input: { [field]: value }, pointer }) => {
      if (value === undefined || value === null) return []
      if (seen.has(value)) return [{ pointer: `${pointer}/${field}`, detail: `is also ${name} of an earlier row` }]
      seen.add(value)
      return []
    })
  })
}

async function existing(
  { db, organizationId }: ReadContext,
  rows: LicenseRows,
  { field, column, name }: (typeof UNIQUE)[number],
): Promise<ValidationError[]> {
  const values = rows.flatMap(({ input }) => input[field] ?? [])
  const found = await sql<{ value: string }>`
    select ${sql.ref(column)} as value from licenses
    where organization_id = ${organizationId} and ${sql.ref(column)} = any(${values}::text[])`.execute(db)
  const taken = new Set(found.rows.map(({ value }) => value))
  return rows.flatMap(({ input: { [field]: value }, pointer }) =>
    typeof value === 'string' && taken.has(value)
      ? [{ pointer: `${pointer}/${field}`, detail: `is ${name} of an existing license` }]
      : [],
  )
}

/** Returns the licenses to insert. Throws INVALID_REQUEST with every invalid row, or LICENSE_KEY_EXISTS when existing keys are the only errors. */
async function requireValid(context: WriteContext, given: Rows<ImportedLicense>): Promise<NewLicense[]> {
  const { rows, errors } = await newLicenses(context, given.rows)
  const invalid = [...given.errors, ...errors, ...duplicates(given.rows)]
  const takenKeys = await existing(context, given.rows, UNIQUE[0])
  const takenIds = await existing(context, given.rows, UNIQUE[1])
  if (invalid.length > 0 || takenIds.length > 0) throw invalidRows([...invalid, ...takenKeys, ...takenIds])
  if (takenKeys.length === 0) return rows
  const count =
    takenKeys.length === 1 ? 'A license with this key exists' : `Licenses with ${takenKeys.length} keys exist`
  throw new ApiError('LICENSE_KEY_EXISTS', `${count}. Remove the rows listed in errors or give them other keys.`, {
    errors: takenKeys,
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
