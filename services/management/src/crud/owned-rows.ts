/**
 * Reads and writes rows that belong to an organization. Every statement, including an update or a deletion by id, is limited to the
 * organization of its context. `insertRow`, `changeRow` and `deleteRow` also write the audit entry. `updateRow` leaves the audit entry to
 * its caller.
 */

import type { ProblemCode } from '@keyward/contract'
import type { EventType } from '@keyward/contract/management/events'
import { type Database, uuidv7, violatedConstraint } from '@keyward/database'
import { type RawBuilder, type Selectable, sql } from 'kysely'

import { audit, valuesBefore } from '../audit/writer.ts'
import type { ReadContext, WriteContext } from '../context.ts'
import type { NewEvent } from '../events/writer.ts'
import { countOf, listPage, type Page, type PageQuery } from '../http/pagination.ts'
import { ApiError, notFound } from '../http/problem.ts'
import { type CountedQuota, requireWithinQuota } from '../quotas/quotas.ts'
import { differences } from './differences.ts'

/** The tables with an `id` and an `organizationId`. */
type OwnedTable = {
  [Table in keyof Database]: Selectable<Database[Table]> extends { id: string; organizationId: string } ? Table : never
}[keyof Database]

export type Row<Table extends OwnedTable> = Selectable<Database[Table]>

/** The error for each constraint that a statement can violate, by the constraint's name. */
type Conflicts = Readonly<Record<string, { code: ProblemCode; detail?: string }>>

/** A table, with the resource type of its rows and their representation in responses. */
export interface OwnedRows<Table extends OwnedTable, Shown> {
  table: Table
  /** The resource type of audit entries, such as `signing_key`. Error messages contain it with spaces instead of underscores. */
  type: string
  /** The representation of a row in responses. */
  show: (row: Row<Table>) => Shown
  conflicts?: Conflicts
  /** The quota toward which a new row counts. */
  quota?: CountedQuota
  /** The types of the events about a row that this module writes. The caller may write other events. */
  events?: Partial<Record<'created' | 'updated' | 'deleted', EventType>>
  /** Throws the error for an unknown id. Default: NOT_FOUND. */
  missing?: (context: ReadContext, id: string) => Promise<never>
}

const LOCKS = { none: sql``, update: sql`for no key update`, delete: sql`for update` }

async function selectRow<Table extends OwnedTable>(
  rows: OwnedRows<Table, unknown>,
  context: ReadContext,
  id: string,
  lock: keyof typeof LOCKS,
): Promise<Row<Table>> {
  const { db, organizationId } = context
  const found = await sql<Row<Table>>`
    select * from ${sql.table(rows.table)} where id = ${id} and organization_id = ${organizationId} ${LOCKS[lock]}`.execute(
    db,
  )
  const [row] = found.rows
  if (row) return row
  if (rows.missing) return rows.missing(context, id)
  throw notFound(rows.type.replaceAll('_', ' '))
}

/** Returns the organization's row with this id. Throws NOT_FOUND. */
export function findRow<Table extends OwnedTable>(
  rows: OwnedRows<Table, unknown>,
  context: ReadContext,
  id: string,
): Promise<Row<Table>> {
  return selectRow(rows, context, id, 'none')
}

/** Returns the row and locks it. No other transaction can change or delete the row until this transaction ends. Throws NOT_FOUND. */
export function lockRow<Table extends OwnedTable>(
  rows: OwnedRows<Table, unknown>,
  context: ReadContext,
  id: string,
): Promise<Row<Table>> {
  return selectRow(rows, context, id, 'update')
}

export async function readRow<Table extends OwnedTable, Shown>(
  rows: OwnedRows<Table, Shown>,
  context: ReadContext,
  id: string,
): Promise<Shown> {
  return rows.show(await findRow(rows, context, id))
}

/** Returns a page of the organization's rows that satisfy all conditions. */
export async function listRows<Table extends OwnedTable, Shown>(
  rows: OwnedRows<Table, Shown>,
  { db, organizationId }: ReadContext,
  query: PageQuery & { total?: 'true' | undefined },
  filters: readonly RawBuilder<unknown>[] = [],
): Promise<Page<Shown>> {
  const list = { name: rows.table, organizationId }
  const conditions = [sql`organization_id = ${organizationId}`, ...filters]
  const page = await listPage<Row<Table> & { id: string }, Shown>(list, query, rows.show, async (after, count) => {
    const all = [...conditions, ...(after === null ? [] : [sql`id < ${after}`])]
    const found = await sql<Row<Table> & { id: string }>`
      select * from ${sql.table(rows.table)} where ${sql.join(all, sql` and `)} order by id desc limit ${count}`.execute(
      db,
    )
    return found.rows
  })
  if (query.total === undefined) return page
  return { ...page, total: await countOf(db, sql`${sql.table(rows.table)} where ${sql.join(conditions, sql` and `)}`) }
}

/**
 * Returns the condition for rows whose metadata contains one of the members, which are JSON texts. The subquery has no limit, so Postgres
 * uses the index on metadata.
 */
export function hasMetadata(
  table: 'licenses' | 'customers',
  { organizationId }: ReadContext,
  members: readonly string[] | undefined,
): RawBuilder<unknown>[] {
  if (members === undefined) return []
  const contained = members.map((member) => sql`metadata @> ${member}::jsonb`)
  return [
    sql`id = any(array(
      select id from ${sql.table(table)} where organization_id = ${organizationId} and metadata <> '{}' and (${sql.join(contained, sql` or `)})
    ))`,
  ]
}

/** The columns of type `jsonb`. */
const JSON_COLUMNS = new Set(['metadata', 'entitlements', 'former', 'application', 'orders', 'errors'])

/** Returns the defined fields as columns and parameters. */
function columnsOf(fields: object): { name: RawBuilder<unknown>; value: RawBuilder<unknown> }[] {
  return Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]: [string, unknown]) => ({
      name: sql.ref(name),
      value: sql`${JSON_COLUMNS.has(name) && value !== null ? JSON.stringify(value) : value}`,
    }))
}

/** Throws the ApiError for the constraint that a statement has violated, or the statement's error when `conflicts` lacks the constraint. */
function rethrow({ conflicts }: { conflicts?: Conflicts }, error: unknown): never {
  const conflict = conflicts?.[violatedConstraint(error)]
  throw conflict ? new ApiError(conflict.code, conflict.detail) : error
}

/** Returns the event about a row, or undefined when `events` has no type for this kind of change. */
function eventOf<Table extends OwnedTable>(
  { events, show }: OwnedRows<Table, unknown>,
  change: 'created' | 'updated' | 'deleted',
  row: Row<Table>,
  before?: Row<Table>,
): NewEvent | undefined {
  const type = events?.[change]
  if (type === undefined) return undefined
  const resource = show(row)
  const former = before && show(before)
  if (typeof resource !== 'object' || resource === null) return undefined
  return { type, resource, ...(typeof former === 'object' && former !== null && { before: former }) }
}

/** Inserts a row with a new id. A column whose field is undefined gets its default. Throws QUOTA_EXCEEDED. */
export async function insertRow<Table extends OwnedTable, Shown>(
  rows: OwnedRows<Table, Shown>,
  context: WriteContext,
  input: Partial<Record<keyof Row<Table>, unknown>>,
): Promise<Shown> {
  if (rows.quota) await requireWithinQuota(context, rows.quota)
  const id = uuidv7()
  const columns = columnsOf({ ...input, id, organizationId: context.organizationId })
  const inserted = await sql<Row<Table>>`
    insert into ${sql.table(rows.table)} (${sql.join(columns.map(({ name }) => name))})
    values (${sql.join(columns.map(({ value }) => value))}) returning *`
    .execute(context.db)
    .catch((error: unknown) => rethrow(rows, error))
  const row = only(inserted.rows)
  const event = eventOf(rows, 'created', row)
  await audit(context, {
    action: `${rows.type}.created`,
    resourceType: rows.type,
    resourceId: id,
    changes: input,
    event,
  })
  return rows.show(row)
}

function only<Found>(rows: readonly Found[]): Found {
  const [row] = rows
  if (!row) throw new Error('a statement on a locked row affected no row')
  return row
}

/** Updates the columns of a row that the transaction has locked. Returns the updated row. */
export async function updateRow<Table extends OwnedTable>(
  rows: OwnedRows<Table, unknown>,
  { db, organizationId }: WriteContext,
  id: string,
  changed: Partial<Record<keyof Row<Table>, unknown>>,
): Promise<Row<Table>> {
  const assignments = columnsOf(changed).map(({ name, value }) => sql`${name} = ${value}`)
  const updated = await sql<Row<Table>>`
    update ${sql.table(rows.table)} set ${sql.join(assignments)}
    where id = ${id} and organization_id = ${organizationId} returning *`
    .execute(db)
    .catch((error: unknown) => rethrow(rows, error))
  return only(updated.rows)
}

/**
 * Applies a PATCH. Locks the row, calls `check`, which may throw, and updates the fields that differ. Without a difference it writes
 * nothing (differences.ts).
 */
export async function changeRow<Table extends OwnedTable, Shown>(
  rows: OwnedRows<Table, Shown>,
  context: WriteContext,
  id: string,
  input: Partial<Record<keyof Row<Table>, unknown>>,
  check?: (before: Row<Table>) => void | Promise<void>,
): Promise<Shown> {
  const before = await lockRow(rows, context, id)
  await check?.(before)
  const changed = differences(before, input)
  if (changed === null) return rows.show(before)
  const row = await updateRow(rows, context, id, { ...changed, updatedAt: new Date() })
  await audit(context, {
    action: `${rows.type}.changed`,
    resourceType: rows.type,
    resourceId: id,
    changes: input,
    before: valuesBefore(before, changed),
    event: eventOf(rows, 'updated', row, before),
  })
  return rows.show(row)
}

export interface Deletion<Table extends OwnedTable> {
  /** Throws when the row may not be deleted. */
  check?: (row: Row<Table>) => void
  /** Returns the fields of the row that the audit entry contains. */
  audited: (row: Row<Table>) => object
  /** Returns the rows that the deletion cascades to, for the audit entry. Runs while the row is locked against new references. */
  cascade?: (context: WriteContext, id: string) => Promise<object>
  /**
   * Returns the event, if it needs data that the row does not contain. Runs while the row is locked. By default, the event is built from
   * the row and `events`.
   */
  event?: (context: WriteContext, id: string) => Promise<NewEvent>
}

export async function deleteRow<Table extends OwnedTable>(
  rows: OwnedRows<Table, unknown>,
  context: WriteContext,
  id: string,
  { check, audited, cascade, event: ownEvent }: Deletion<Table>,
): Promise<void> {
  const { db, organizationId } = context
  const row = await selectRow(rows, context, id, 'delete')
  check?.(row)
  const event = ownEvent ? await ownEvent(context, id) : eventOf(rows, 'deleted', row)
  const changes = { ...audited(row), ...(await cascade?.(context, id)) }
  await sql`delete from ${sql.table(rows.table)} where id = ${id} and organization_id = ${organizationId}`
    .execute(db)
    .catch((error: unknown) => rethrow(rows, error))
  await audit(context, { action: `${rows.type}.deleted`, resourceType: rows.type, resourceId: id, changes, event })
}

/** Returns the ids that belong to no row of the organization. */
export async function missingIds(
  table: OwnedTable,
  { db, organizationId }: ReadContext,
  ids: readonly string[],
): Promise<Set<string>> {
  const missing = new Set(ids)
  if (missing.size === 0) return missing
  const { rows } = await sql<{ id: string }>`
    select id from ${sql.table(table)} where id = any(${[...missing]}::uuid[]) and organization_id = ${organizationId}`.execute(
    db,
  )
  for (const { id } of rows) missing.delete(id)
  return missing
}

/** Returns an expression for any of the ids. Unlike a list of parameters, its text does not depend on the number of ids. */
export function anyId(rows: readonly { id: string }[]): RawBuilder<string> {
  return sql<string>`any(${rows.map(({ id }) => id)}::uuid[])`
}
