/** Importing licenses: all or nothing, in a few set-based statements, and a refusal tells every bad row at once. */
import type { CreateLicense } from '@keyward/contract'
import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'

import { audit, type Change, recordChange } from '../../audit/writer.ts'
import type { Db } from '../../http/context.ts'
import { type Fault, Refusal } from '../../http/problem.ts'
import { invalidRows, type Row, type Rows } from '../../http/validation-errors.ts'
import { generateLicenseKey } from './key.ts'
import { insertLicenses, missingParents, refuseTakenKey } from './store.ts'

type Rowed = readonly Row<CreateLicense>[]

function repeatedKeys(rows: Rowed): Fault[] {
  const seen = new Set<string>()
  return rows.flatMap(({ input: { key }, pointer }) => {
    if (key === undefined || !seen.has(key)) {
      if (key !== undefined) seen.add(key)
      return []
    }
    return [{ pointer: `${pointer}/key`, detail: 'stands in the list twice' }]
  })
}

async function takenKeys(db: Db, organizationId: string, rows: Rowed): Promise<Fault[]> {
  const keys = rows.flatMap(({ input }) => input.key ?? [])
  const found = await db
    .selectFrom('licenses')
    .select('key')
    .where('organizationId', '=', organizationId)
    .where('key', '=', sql<string>`any(${keys}::text[])`)
    .execute()
  const taken = new Set(found.map((row) => row.key))
  return rows.flatMap(({ input: { key }, pointer }) =>
    key !== undefined && taken.has(key) ? [{ pointer: `${pointer}/key`, detail: 'exists' }] : [],
  )
}

/** 422 with every bad row; where keys that exist are all that is wrong, 409 with those. */
async function refuseBadRows({ db, organizationId }: Change, { rows, faults }: Rows<CreateLicense>): Promise<void> {
  const pointed = rows.map(({ input, pointer }) => ({ ...input, pointer }))
  const bad = [...faults, ...(await missingParents(db, organizationId, pointed)), ...repeatedKeys(rows)]
  const taken = await takenKeys(db, organizationId, rows)
  if (bad.length > 0) throw invalidRows([...bad, ...taken])
  if (taken.length === 0) return
  const detail = taken.length === 1 ? '1 key exists.' : `${taken.length} keys exist.`
  throw new Refusal('LICENSE_KEY_EXISTS', detail, { errors: taken })
}

export async function importLicenses(change: Change, given: Rows<CreateLicense>) {
  await refuseBadRows(change, given)
  const rows = given.rows.map(({ input }) => ({ ...input, id: uuidv7(), key: input.key ?? generateLicenseKey() }))
  await insertLicenses(change, rows).catch(refuseTakenKey)
  const ids = rows.map((row) => row.id)
  const changes = { created: rows.length, ids }
  await audit(change, { action: 'license.imported', resourceType: 'license', resourceId: null, changes })
  await recordChange(change, 'LICENSE_CREATED', ids)
  return { created: rows.length, licenses: rows.map(({ id, key }) => ({ id, key })) }
}
