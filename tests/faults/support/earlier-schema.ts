/** Fills a database in the schema of an earlier version with the rows of many licenses. */

import { uuidv7 } from '@keyward/database'

import type { openPool } from './postgres.ts'

type Pool = ReturnType<typeof openPool>

export interface Rows {
  organizationId: string
  productId: string
  customerId: string
}

/** Adds `count` licenses to an organization, each with a machine, and as many customers, access rules and audit entries. */
export async function fillEarlierSchema(pool: Pool, organizationId: string, count: number): Promise<Rows> {
  const [productId, customerId] = [uuidv7(), uuidv7()]
  const values = [organizationId, productId, customerId, count]
  const client = await pool.connect()
  try {
    await client.query(`insert into products (id, organization_id, name) values ($1, $2, 'App')`, [
      productId,
      organizationId,
    ])
    await client.query(`insert into customers (id, organization_id, email) values ($1, $2, 'ada@example.com')`, [
      customerId,
      organizationId,
    ])
    await client.query(
      `insert into customers (id, organization_id, email, name)
       select new_id(), $1, 'customer' || i || '@example.com', 'Customer ' || i from generate_series(1, $2::integer) i`,
      [organizationId, count],
    )
    await client.query(
      `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
       select new_id(), $1, $2, $3, 'KEY-' || i, 'PERPETUAL', 5 from generate_series(1, $4::integer) i`,
      values,
    )
    await client.query(
      `insert into machines (id, license_id, machine_id, hostname)
       select new_id(), id, convert_to('machine of ' || key, 'UTF8'), 'host of ' || key from licenses where organization_id = $1`,
      [organizationId],
    )
    await client.query(
      `insert into access_rules (id, organization_id, kind, type, value, scope, created_by)
       select new_id(), $1, 'BLACKLIST', 'HWID', convert_to('stolen ' || i, 'UTF8'), 'ORGANIZATION', '{"type":"OPERATOR"}'
       from generate_series(1, $2::integer) i`,
      [organizationId, count],
    )
    await client.query(
      `insert into audit_log (id, organization_id, actor, action, resource_type, resource_id)
       select new_id(), organization_id, '{"type":"OPERATOR"}', 'license.created', 'license', id from licenses`,
    )
    // Management deletes the occurrences within a second, after it has written their events.
    await client.query('delete from occurrences')
    await client.query('analyze')
  } finally {
    client.release()
  }
  return { organizationId, productId, customerId }
}
