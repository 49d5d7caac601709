/** Inserts licenses for the programs that claim slots. */

import { uuidToBytes } from '@keyward/database'
import { insertCustomer, insertOrganization, insertProduct } from '@keyward/testkit'
import type pg from 'pg'

/** Inserts an organization with `count` licenses of a million slots each. Returns the ids of the licenses. */
export async function insertLicenses(pool: pg.Pool, count: number): Promise<Uint8Array[]> {
  const organizationId = await insertOrganization(pool)
  const productId = await insertProduct(pool, { organizationId })
  const customerId = await insertCustomer(pool, { organizationId })
  const { rows } = await pool.query<{ id: string }>(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines)
     select gen_random_uuid(), $1, $2, $3, 'KEY-' || n, 'PERPETUAL', 1000000
     from generate_series(1, $4::integer) n returning id`,
    [organizationId, productId, customerId, count],
  )
  return rows.map(({ id }) => uuidToBytes(id))
}
