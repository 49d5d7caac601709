/** Imports licenses in a few set-based statements: all rows or none (docs/api.md#m20). An error lists every invalid row. */

import {
  type Customer,
  type importedLicense,
  type importOptions,
  MAX_IMPORT_MACHINES,
  type Permission,
} from '@keyward/contract'
import { uuidv7 } from '@keyward/database'
import { sql } from 'kysely'
import type { z } from 'zod'

import { recordLicenseActivity } from '../../activity/writer.ts'
import { audit, listOf } from '../../audit/writer.ts'
import type { ReadContext, WriteContext } from '../../context.ts'
import { type CustomerRow, showCustomer } from '../../crud/customer-rows.ts'
import { writeEvents } from '../../events/writer.ts'
import { ApiError, type ValidationError } from '../../http/problem.ts'
import { invalidRows, type Row, type Rows } from '../../http/upload-rows.ts'
import { requireWithinQuota } from '../../quotas/quotas.ts'
import { selectLicenses, showLicense } from './license-rows.ts'
import { insertLicenses, type NewLicense, newLicenses, requireLicensesWithinQuotas } from './store.ts'

type ImportedLicense = z.output<typeof importedLicense>
type LicenseRows = readonly Row<ImportedLicense>[]
type ImportContext = WriteContext & { permissions: ReadonlySet<Permission> }
type ImportRow = Awaited<ReturnType<typeof newLicenses>>['rows'][number] & {
  machines: NonNullable<ImportedLicense['machines']>
}

/** The number of licenses that are read at once for their events. */
const EVENT_ROWS = 250

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

/** Returns the values of a unique field that licenses have, each with the id of its license. */
async function existing(
  { db, organizationId }: ReadContext,
  rows: LicenseRows,
  { field, column }: (typeof UNIQUE)[number],
): Promise<Map<string, string>> {
  const values = rows.flatMap(({ input }) => input[field] ?? [])
  const found = await sql<{ id: string; value: string }>`
    select id, ${sql.ref(column)} as value from licenses
    where organization_id = ${organizationId} and ${sql.ref(column)} = any(${values}::text[])`.execute(db)
  return new Map(found.rows.map(({ id, value }) => [value, id]))
}

/** Separates the rows whose key or external id a license has. A row that names two licenses is an error, also with `skipExisting`. */
async function separateExisting(context: ReadContext, rows: LicenseRows, skipExisting: boolean) {
  const [keys, externalIds] = [await existing(context, rows, UNIQUE[0]), await existing(context, rows, UNIQUE[1])]
  const fresh: Row<ImportedLicense>[] = []
  const errors: Record<'keys' | 'externalIds', ValidationError[]> = { keys: [], externalIds: [] }
  for (const row of rows) {
    const byKey = keys.get(row.input.key ?? '')
    const byExternalId = externalIds.get(row.input.externalId ?? '')
    const isSame = byKey === undefined || byExternalId === undefined || byKey === byExternalId
    if ((byKey ?? byExternalId) === undefined || !skipExisting) fresh.push(row)
    if (skipExisting && isSame) continue
    const error = ({ field, name }: (typeof UNIQUE)[number]) => ({
      pointer: `${row.pointer}/${field}`,
      detail: `is ${name} of an existing license`,
    })
    if (byKey !== undefined) errors.keys.push(error(UNIQUE[0]))
    if (byExternalId !== undefined) errors.externalIds.push(error(UNIQUE[1]))
  }
  return { fresh, errors }
}

type NamedCustomer = NonNullable<ImportedLicense['customer']>

/** Returns the id of each customer: that with the external id, or otherwise the oldest one with the e-mail address, or null. */
async function findCustomers(
  { db, organizationId }: ReadContext,
  named: readonly NamedCustomer[],
): Promise<(string | null)[]> {
  const { rows } = await sql<{ id: string | null }>`
    select (
      select c.id from customers c
      where c.organization_id = ${organizationId} and (c.external_id = n.external_id
        or (lower(c.email) = lower(n.email) and (c.external_id is null or n.external_id is null)))
      order by c.external_id is not distinct from n.external_id desc, c.id limit 1
    ) as id
    from unnest(${named.map((one) => one.externalId ?? null)}::text[], ${named.map((one) => one.email ?? null)}::text[])
      with ordinality as n (external_id, email, at) order by n.at`.execute(db)
  return rows.map(({ id }) => id)
}

/** Creates the customers, with their events, and returns them in this order. The audit entry of the import contains them. */
async function createCustomersOf(context: WriteContext, named: readonly NamedCustomer[]): Promise<Customer[]> {
  if (named.length === 0) return []
  const { db, organizationId, actor } = context
  await requireWithinQuota(context, 'customers', named.length)
  const ids = named.map(() => uuidv7())
  const { rows } = await sql<CustomerRow>`
    insert into customers (id, organization_id, email, name, external_id)
    select n.id, ${organizationId}, n.email, n.name, n.external_id
    from unnest(${ids}::uuid[], ${named.map((one) => one.email ?? '')}::text[],
      ${named.map((one) => one.name ?? null)}::text[], ${named.map((one) => one.externalId ?? null)}::text[])
      as n (id, email, name, external_id)
    returning *`.execute(db)
  const byId = new Map(rows.map((row) => [row.id, showCustomer(row)]))
  const created = ids.flatMap((id) => byId.get(id) ?? [])
  await writeEvents(
    db,
    created.map((resource) => ({ type: 'customer.created', resource, organizationId, actor }) as const),
  )
  return created
}

/** Sets the ids of the customers that rows name by e-mail address or external id. Returns an error for each row without a customer. */
async function resolveCustomers(
  context: ImportContext,
  rows: LicenseRows,
  createCustomers: boolean,
): Promise<{ rows: LicenseRows; created: Customer[]; errors: ValidationError[] }> {
  const nameOf = ({ externalId, email }: NamedCustomer) =>
    externalId === undefined ? `email ${email?.toLowerCase()}` : `id ${externalId}`
  const named = new Map<string, NamedCustomer>()
  for (const { input } of rows) {
    const { customer } = input
    if (customer && !named.has(nameOf(customer))) named.set(nameOf(customer), customer)
  }
  if (named.size === 0) return { rows, created: [], errors: [] }
  const needed: Permission = createCustomers ? 'customers.write' : 'customers.read'
  if (!context.permissions.has(needed))
    throw new ApiError('FORBIDDEN', `The rows name customers, which needs the permission ${needed}.`)
  // The lock keeps two imports from creating the same customer.
  await sql`select pg_advisory_xact_lock(hashtextextended(${`${context.organizationId} import`}, 0))`.execute(
    context.db,
  )
  const found = await findCustomers(context, [...named.values()])
  const ids = new Map([...named.keys()].map((name, at) => [name, found[at] ?? null]))
  const missing = [...named].filter(
    ([name, { email }]) => createCustomers && email !== undefined && ids.get(name) === null,
  )
  // A row with only an e-mail address means the first customer that another row names by an external id with this address.
  const byEmail = new Map(
    missing
      .toReversed()
      .flatMap(([name, { externalId, email = '' }]) =>
        externalId === undefined ? [] : [[email.toLowerCase(), name] as const],
      ),
  )
  const meant = (name: string, { externalId, email = '' }: NamedCustomer): string =>
    externalId === undefined ? (byEmail.get(email.toLowerCase()) ?? name) : name
  const unknown = missing.filter(([name, customer]) => meant(name, customer) === name)
  const created = await createCustomersOf(
    context,
    unknown.map(([, customer]) => customer),
  )
  for (const [at, [name]] of unknown.entries()) ids.set(name, created[at]?.id ?? null)
  for (const [name, customer] of missing) ids.set(name, ids.get(meant(name, customer)) ?? null)
  const errors: ValidationError[] = []
  const detail = createCustomers
    ? 'must have an email, because no customer has this external id'
    : 'must be an existing customer, unless createCustomers is true'
  const resolved = rows.map(({ input, pointer }) => {
    if (!input.customer) return { input, pointer }
    const customerId = ids.get(nameOf(input.customer)) ?? ''
    if (customerId === '') errors.push({ pointer: `${pointer}/customer`, detail })
    return { input: { ...input, customerId }, pointer }
  })
  return { rows: resolved, created, errors }
}

/** Returns the errors of rows with more machines than slots, or with too many for one import. */
function excessiveMachines(rows: readonly ImportRow[]): ValidationError[] {
  let all = 0
  return rows.flatMap(({ pointer, machines, policy: { maxMachines } }) => {
    all += machines.length
    const error = (detail: string) => [{ pointer: `${pointer}/machines`, detail }]
    if (maxMachines !== null && machines.length > maxMachines)
      return error(`has ${machines.length} machines, and the license has ${maxMachines} slots`)
    return machines.length > 0 && all > MAX_IMPORT_MACHINES
      ? error(`exceeds the ${MAX_IMPORT_MACHINES} machines of one import; send several requests`)
      : []
  })
}

async function insertMachines({ db, organizationId }: WriteContext, rows: readonly ImportRow[]): Promise<number> {
  const machines = rows.flatMap(({ id, machines: given, policy: { maxMachines, leaseSeconds } }) =>
    given.map((one) => ({ ...one, licenseId: id, leaseSeconds: maxMachines === null ? null : leaseSeconds })),
  )
  if (machines.length === 0) return 0
  const column = <Value>(pick: (one: (typeof machines)[number]) => Value): Value[] => machines.map(pick)
  await sql`
    insert into machines (id, organization_id, license_id, machine_id, hostname, lease_ends_at)
    select n.id, ${organizationId}, n.license_id, n.machine_id, n.hostname, now() + n.lease_seconds * interval '1 second'
    from unnest(${column(() => uuidv7())}::uuid[], ${column((one) => one.licenseId)}::uuid[],
      ${column((one) => Buffer.from(one.machineId))}::bytea[], ${column((one) => one.hostname ?? null)}::text[],
      ${column((one) => one.leaseSeconds)}::integer[]) as n (id, license_id, machine_id, hostname, lease_seconds)`.execute(
    db,
  )
  return machines.length
}

/** Throws INVALID_REQUEST with every invalid row, or LICENSE_KEY_EXISTS when existing keys are the only errors. */
function requireNone(invalid: readonly ValidationError[], takenKeys: ValidationError[]): void {
  if (invalid.length > 0) throw invalidRows([...invalid, ...takenKeys])
  if (takenKeys.length === 0) return
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

export async function importLicenses(
  context: ImportContext,
  given: Rows<ImportedLicense, z.output<typeof importOptions>>,
) {
  const { createCustomers = false, skipExisting = false } = given.others ?? {}
  const { fresh, errors: taken } = await separateExisting(context, given.rows, skipExisting)
  const customers = await resolveCustomers(context, fresh, createCustomers)
  // A row without a customer already has an error.
  const placed = customers.rows.filter(({ input }) => input.customerId !== '')
  const completed = await newLicenses(context, placed)
  const machinesOf = new Map(placed.map(({ input, pointer }) => [pointer, input.machines ?? []]))
  const rows = completed.rows.map((row) => Object.assign(row, { machines: machinesOf.get(row.pointer) ?? [] }))
  requireNone(
    [
      ...given.errors,
      ...duplicates(given.rows),
      ...customers.errors,
      ...completed.errors,
      ...excessiveMachines(rows),
      ...taken.externalIds,
    ],
    taken.keys,
  )
  await requireLicensesWithinQuotas(
    context,
    rows.map(({ policy }) => policy.maxMachines),
  )
  await requireWithinQuota(
    context,
    'machines',
    rows.reduce((sum, { machines }) => sum + machines.length, 0),
  )
  await insertLicenses(context, rows)
  const machines = await insertMachines(context, rows)
  for (let at = 0; at < rows.length; at += EVENT_ROWS) await writeCreated(context, rows.slice(at, at + EVENT_ROWS))
  const ids = rows.map((row) => row.id)
  const audited = rows.map(({ machines: own, ...row }) => ({ ...row, machines: own.length }))
  const changes = {
    created: rows.length,
    machines,
    customers: listOf(customers.created),
    ids,
    licenses: listOf(audited),
  }
  if (rows.length > 0)
    await audit(context, { action: 'license.imported', resourceType: 'license', resourceId: null, changes })
  await recordLicenseActivity(context, 'LICENSE_CREATED', ids)
  return {
    created: rows.length,
    skipped: given.rows.length - fresh.length,
    createdCustomers: customers.created.length,
    licenses: rows.map(({ id, key, pointer }) => ({ id, key, pointer })),
  }
}
