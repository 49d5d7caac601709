import { type RawBuilder, sql } from 'kysely'

/**
 * Returns an organization in a form that hides it from the planner, so that a plan does not depend on whether the statistics contain the
 * organization. For an organization that they do not contain yet, Postgres expects one row. It then prefers an index by which it reads all
 * rows of the organization, even once for each row of an import or each value of a filter.
 */
export function hiddenOrganization(organizationId: string): RawBuilder<string> {
  return sql<string>`(select ${organizationId}::uuid)`
}
