import { uuidv7 } from '@keyward/database'
import pg from 'pg'

const PRODUCTS = 20

/** Inserts customers with a license and a machine each. Of 100 licenses, 3 are suspended and 1 is revoked. */
async function insertLicenses(client: pg.Client, organization: string, products: string[], count: number) {
  await client.query(
    `insert into customers (id, organization_id, email, name)
     select new_id(), $1, 'customer' || i || '@example.com', 'Customer ' || i from generate_series(1, $2::integer) i`,
    [organization, count],
  )
  await client.query(
    `insert into licenses (id, organization_id, product_id, customer_id, key, policy_type, max_machines, expires_at, status)
     select new_id(), $1, ($2::uuid[])[1 + c.i % ${PRODUCTS}], c.id, 'KEY-' || c.i, 'SUBSCRIPTION', 5,
       now() + make_interval(hours => (c.i * 7919 % 50000)::integer - 500),
       case when c.i / 20 % 100 < 96 then 'active' when c.i / 20 % 100 < 99 then 'suspended' else 'revoked' end
     from (select id, row_number() over () as i from customers where organization_id = $1) c`,
    [organization, products],
  )
  await client.query(
    'insert into license_slots (license_id, used) select id, 1 from licenses where organization_id = $1',
    [organization],
  )
  await client.query(
    `insert into machines (id, license_id, organization_id, machine_id, hostname)
     select new_id(), id, $1, convert_to(replace(key, 'KEY', 'machine'), 'UTF8'), replace(key, 'KEY', 'Host')
     from licenses where organization_id = $1`,
    [organization],
  )
}

/** Inserts rules: half of them about addresses, the others about machines. A fifth of the rules have a product as scope. */
async function insertRules(client: pg.Client, organization: string, products: string[], count: number) {
  await client.query(
    `insert into access_rules (id, organization_id, kind, mode, type, value, scope, product_id, created_by)
     select new_id(), $1, kind, case when i % 50 = 0 then 'MONITOR' else 'ENFORCE' end, type, convert_to(value, 'UTF8'),
       case when product is null then 'ORGANIZATION' else 'PRODUCT' end, product, '{"type":"OPERATOR"}'
     from generate_series(1, $3::integer) i cross join lateral (select
       case when i % 10 = 0 then 'EXCLUSION' when i % 97 = 0 then 'RESTRICTION' else 'BLACKLIST' end as kind,
       case when i % 2 = 0 then 'IP' else 'HWID' end as type,
       case when i % 2 = 0 then host('10.0.0.0'::inet + i * 16) else 'ruled-' || i end as value,
       case when i % 5 = 0 then ($2::uuid[])[1 + i % ${PRODUCTS}] end as product) r`,
    [organization, products, count],
  )
  await client.query(
    `insert into access_rule_counters (rule_id, organization_id, match_count, last_matched_at)
     select id, $1, abs(hashtext(id::text)) % 1000, now() - make_interval(mins => abs(hashtext(id::text)) % 40000)
     from access_rules where organization_id = $1`,
    [organization],
  )
}

/**
 * Inserts products, licenses with a customer and a machine each, and access rules. Returns the ids of the products. Triggers are disabled
 * for all rows except the products, because they would write an entry in the change log for each row.
 */
export async function fillOrganization(
  url: string,
  organizationId: string,
  { licenses, rules = 0 }: { licenses: number; rules?: number },
): Promise<string[]> {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  try {
    const products = Array.from({ length: PRODUCTS }, () => uuidv7())
    await client.query(
      `insert into products (id, organization_id, name)
       select id, $1, 'App ' || i from unnest($2::uuid[]) with ordinality as p (id, i)`,
      [organizationId, products],
    )
    await client.query('set session_replication_role = replica')
    await insertLicenses(client, organizationId, products, licenses)
    if (rules > 0) await insertRules(client, organizationId, products, rules)
    // Otherwise autovacuum disturbs the first measurements.
    await client.query('vacuum analyze')
    return products
  } finally {
    await client.end()
  }
}
