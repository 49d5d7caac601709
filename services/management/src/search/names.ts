/** Returns the names of resources by their ids, so that a screen with many ids needs one request (docs/api.md#m15). */

import type { Permission } from '@keyward/contract'
import { names as operations } from '@keyward/contract/management/names'
import { type RawBuilder, sql } from 'kysely'

import type { ReadContext } from '../context.ts'
import { implement } from '../operations/implement.ts'
import { searchTag } from './search.ts'

/** A table of named resources. The value of a rule is stored as bytes, because a machine id may contain NUL. */
interface Named {
  permission: Permission
  table: string
  name: RawBuilder<string | Buffer>
}

const NAMED: readonly Named[] = [
  { permission: 'licenses.read', table: 'licenses', name: sql`convert_to(key, 'UTF8')` },
  { permission: 'licenses.read', table: 'access_rules', name: sql`value` },
  { permission: 'customers.read', table: 'customers', name: sql`convert_to(coalesce(name, email), 'UTF8')` },
  { permission: 'products.read', table: 'products', name: sql`convert_to(name, 'UTF8')` },
  { permission: 'products.read', table: 'license_templates', name: sql`convert_to(name, 'UTF8')` },
  {
    permission: 'webhooks.read',
    table: 'webhook_endpoints',
    name: sql`convert_to(coalesce(description, url), 'UTF8')`,
  },
  { permission: 'orders.read', table: 'commerce_connections', name: sql`convert_to(name, 'UTF8')` },
  { permission: 'credentials.write', table: 'members', name: sql`convert_to(email, 'UTF8')` },
  { permission: 'credentials.write', table: 'credentials', name: sql`convert_to(name, 'UTF8')` },
  { permission: 'credentials.write', table: 'signing_keys', name: sql`convert_to(key_id, 'UTF8')` },
]

export async function readNames(
  { db, organizationId, permissions }: ReadContext & { permissions: ReadonlySet<Permission> },
  ids: readonly string[],
): Promise<Record<string, string>> {
  const selects = NAMED.filter(({ permission }) => permissions.has(permission)).map(
    ({ table, name }) =>
      sql`select id, ${name} as name from ${sql.table(table)} where id = any(${ids}::uuid[]) and organization_id = ${organizationId}`,
  )
  if (selects.length === 0) return {}
  const { rows } = await sql<{ id: string; name: Buffer }>`${sql.join(selects, sql` union all `)}`.execute(db)
  return Object.fromEntries(rows.map(({ id, name }) => [id, name.toString('utf8')]))
}

export const names = implement(searchTag, operations, {
  readNames: {
    summary: 'Read the names of resources',
    description: 'Returns the names of at most 100 licenses, customers, products and other resources in one request.',
    handle: async (call) => ({ names: await readNames(call, call.query.ids) }),
  },
})
