/**
 * The one rule by which a change of a template reaches licenses (docs/api.md#m17): a field of a license changes if and only if it still
 * equals a value that the template had. The rule exists for one row in memory, and as SQL for all licenses of a template. A test compares
 * the two.
 */

import { isDeepStrictEqual } from 'node:util'

import type { Database } from '@keyward/database'
import { type RawBuilder, type Selectable, sql } from 'kysely'

export type TemplateRow = Selectable<Database['licenseTemplates']>

const COLUMNS = [
  'policyType',
  'durationDays',
  'maxMachines',
  'maxReleases',
  'leaseSeconds',
  'graceDays',
  'fileDays',
  'entitlements',
  'metadata',
] as const
/** The values that a template and its licenses have in common. */
export type TemplateValues = Pick<TemplateRow, (typeof COLUMNS)[number]>

/** A field of a license that changes as a whole. The type and the days of the term are one field, because they must fit each other. */
interface Field {
  name: string
  columns: readonly (keyof TemplateValues)[]
}

export const FIELDS: readonly Field[] = [
  { name: 'term', columns: ['policyType', 'durationDays'] },
  ...COLUMNS.slice(2).map((column) => ({ name: column, columns: [column] })),
]

/** The number of former values of a field that are kept. */
const MAX_FORMER = 20

/** Former values by field. Each value is a list with one element for each column of the field. */
export type FormerValues = Record<string, unknown[][]>

const valueOf = ({ columns }: Field, row: TemplateValues): unknown[] => columns.map((column) => row[column])

/** Returns the former values after a change of the template. */
export function formerAfter(former: FormerValues, before: TemplateValues, after: TemplateValues): FormerValues {
  const added = FIELDS.filter((field) => !isDeepStrictEqual(valueOf(field, before), valueOf(field, after)))
  return Object.fromEntries([
    ...Object.entries(former),
    ...added.map(({ name, columns }) => {
      const known = former[name] ?? []
      return [name, [valueOf({ name, columns }, before), ...known].slice(0, MAX_FORMER)] as const
    }),
  ])
}

/** A license whose term has started keeps it, because its expiry stays. */
const canChange = ({ name }: Field, { expiresAt }: { expiresAt: Date | null }) => name !== 'term' || expiresAt === null

/** Returns the values that change when a license moves from one template to another. */
export function valuesMoved(
  license: TemplateValues & { expiresAt: Date | null },
  from: TemplateRow,
  to: TemplateValues,
): Partial<TemplateValues> {
  const moved = FIELDS.filter((field) => {
    const own = valueOf(field, license)
    const former = (formerOf(from)[field.name] ?? []).some((value) => isDeepStrictEqual(value, own))
    return canChange(field, license) && (former || isDeepStrictEqual(own, valueOf(field, from)))
  })
  return Object.fromEntries(moved.flatMap(({ columns }) => columns.map((column) => [column, to[column]])))
}

/** Returns the former values of a template. Only this service writes the column. */
export function formerOf({ former }: TemplateRow): FormerValues {
  const values: FormerValues = {}
  for (const [name, value] of Object.entries(former))
    if (Array.isArray(value)) values[name] = value.filter((one): one is unknown[] => Array.isArray(one))
  return values
}

/** The effect of a template on its licenses, as SQL for rows of `licenses`. */
export interface Effect {
  /** Whether at least one field changes. */
  changes: RawBuilder<boolean>
  /** Whether at least one field keeps a value that the template never had. */
  keeps: RawBuilder<boolean>
  /** The names of the fields that change, and of those that are kept, as arrays of text. */
  changedFields: RawBuilder<string[]>
  keptFields: RawBuilder<string[]>
  /** The assignments of an update. */
  assignments: RawBuilder<unknown>
}

/** Returns the effect of a template with these former values, or null when it has none. */
export function effectOf(template: TemplateRow, former: FormerValues): Effect | null {
  const fields = FIELDS.flatMap((field) => {
    const values = former[field.name] ?? []
    if (values.length === 0) return []
    const own = sql`jsonb_build_array(${sql.join(field.columns.map((column) => sql.ref(column)))})`
    const isNew = sql`${own} = ${JSON.stringify(valueOf(field, template))}::jsonb`
    const isFormer = sql`${own} = any(${values.map((value) => JSON.stringify(value))}::jsonb[])`
    const isFree = field.name === 'term' ? sql` and expires_at is null` : sql``
    const changes = sql<boolean>`(not ${isNew} and ${isFormer}${isFree})`
    return [{ ...field, changes, keeps: sql<boolean>`(not ${isNew} and not ${changes})` }]
  })
  if (fields.length === 0) return null
  const any = (conditions: RawBuilder<boolean>[]) => sql<boolean>`(${sql.join(conditions, sql` or `)})`
  const names = (of: 'changes' | 'keeps') =>
    sql<
      string[]
    >`array_remove(array[${sql.join(fields.map((field) => sql`case when ${field[of]} then ${field.name}::text end`))}], null)`
  return {
    changes: any(fields.map(({ changes }) => changes)),
    keeps: any(fields.map(({ keeps }) => keeps)),
    changedFields: names('changes'),
    keptFields: names('keeps'),
    assignments: sql.join(
      fields.flatMap(({ columns, changes }) =>
        columns.map(
          (column) =>
            sql`${sql.ref(column)} = case when ${changes} then ${parameter(template, column)} else ${sql.ref(column)} end`,
        ),
      ),
    ),
  }
}

function parameter(template: TemplateValues, column: keyof TemplateValues): RawBuilder<unknown> {
  const value = template[column]
  if (column === 'policyType') return sql`${value}::text`
  if (column === 'entitlements' || column === 'metadata')
    return sql`${value === null ? null : JSON.stringify(value)}::jsonb`
  return sql`${value}::integer`
}
