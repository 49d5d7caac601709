/**
 * Reads the rows that verdicts depend on from Keyward's database, for baselines with a store of their own. Rows refer to each other by
 * small numbers instead of UUIDs. Restrictions, monitored rules, terms and leases are left out.
 */

import { createWriteStream } from 'node:fs'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

import pg from 'pg'
import { to as copyTo } from 'pg-copy-streams'

/** The tables whose rows are numbered, in the order of their ids. */
const NUMBERED = ['organizations', 'products', 'customers', 'licenses']

const base64 = (bytes: string): string => `translate(encode(${bytes}, 'base64'), E'\\n', '')`
const milliseconds = (time: string): string => `floor(extract(epoch from ${time}) * 1000)::bigint`

/**
 * One query per kind of line. The columns are separated by tabs, and null is the empty text.
 *
 * - `C`: the SHA-256 of an API key in base64, organization, expiry in milliseconds
 * - `L`: organization, key in base64, number, product, customer, status (a, s or r), expiry in milliseconds and in ISO 8601, machine
 *   limit, machines that hold a slot
 * - `M`: license, machine id in base64
 * - `R`: organization, type (I, H, C or U), value in base64, scope (O, P and a product, or L and a license), effect, expiry in
 *   milliseconds. The effect is B for a blacklist, E for an exclusion, and A for one that allows suspended and expired licenses. The
 *   value of a customer rule (U) is the number of the customer.
 */
const LINES = [
  `select 'C', ${base64('c.secret_hash')}, o.n, ${milliseconds('c.expires_at')}
     from credentials c join numbered_organizations o on o.id = c.organization_id
    where c.kind = 'API_KEY' and c.revoked_at is null and c.product_id is null`,
  `select 'L', o.n, ${base64(`convert_to(l.key, 'UTF8')`)}, n.n, p.n, c.n, left(l.status, 1), ${milliseconds('l.expires_at')},
          to_char(l.expires_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), l.max_machines, s.used
     from licenses l join license_slots s on s.license_id = l.id
     join numbered_licenses n on n.id = l.id join numbered_organizations o on o.id = l.organization_id
     join numbered_products p on p.id = l.product_id join numbered_customers c on c.id = l.customer_id`,
  `select 'M', n.n, ${base64('m.machine_id')} from machines m join numbered_licenses n on n.id = m.license_id`,
  `select 'R', o.n, case r.type when 'IP' then 'I' when 'HWID' then 'H' when 'COUNTRY' then 'C' else 'U' end,
          ${base64(`case when r.type = 'CUSTOMER' then convert_to(u.n::text, 'UTF8') else r.value end`)},
          case r.scope when 'LICENSE' then 'L' || n.n when 'PRODUCT' then 'P' || p.n else 'O' end,
          case when r.kind = 'BLACKLIST' then 'B' when r.allow_suspended_or_expired then 'A' else 'E' end,
          ${milliseconds('r.expires_at')}
     from access_rules r join numbered_organizations o on o.id = r.organization_id
     left join numbered_licenses n on n.id = r.license_id left join numbered_products p on p.id = r.product_id
     left join numbered_customers u on u.id = r.customer_id
    where r.mode = 'ENFORCE' and r.kind in ('BLACKLIST', 'EXCLUSION')`,
]

/** Writes all lines to a file. */
export async function writeWorld(databaseUrl: string, path: string): Promise<void> {
  await withWorld(databaseUrl, async (open) => {
    for (const query of LINES) await pipeline(open(query), createWriteStream(path, { flags: 'a', mode: 0o600 }))
  })
}

/** Calls `receive` with the columns of each line. If `receive` returns a promise, waits for it before the next line. */
export async function readWorld(
  databaseUrl: string,
  receive: (columns: string[]) => Promise<void> | undefined,
): Promise<void> {
  await withWorld(databaseUrl, async (open) => {
    for (const query of LINES)
      for await (const line of createInterface({ input: open(query), crlfDelay: Infinity })) {
        const pending = receive(line.split('\t'))
        if (pending !== undefined) await pending
      }
  })
}

async function withWorld(
  databaseUrl: string,
  work: (open: (query: string) => Readable) => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, application_name: 'keyward-baseline-export' })
  await client.connect()
  try {
    for (const table of NUMBERED) {
      await client.query(
        `create temp table numbered_${table} as select id, row_number() over (order by id)::integer as n from ${table}`,
      )
      await client.query(`analyze numbered_${table}`)
    }
    await work((query) => client.query(copyTo(`copy (${query}) to stdout with (null '')`)))
  } finally {
    await client.end()
  }
}
