/**
 * Express with Postgres: one prepared statement reads everything that a check needs from Keyward's own tables, by indexes. The app server
 * decides. The baseline records no usage.
 */

import { createHash } from 'node:crypto'

import { createPool } from '@keyward/database'
import express from 'express'
import type pg from 'pg'

import { announce } from './companion.ts'
import {
  clientAddress,
  decide,
  EFFECT,
  type License,
  type Match,
  PrefixLengths,
  readRequest,
  type Request,
  SCOPE,
} from './verdict.ts'

/**
 * Parameters: the hash of the API key, the license key, the machine id, and the types and values of the rules that may match. The statement
 * itself adds the value of rules about the customer.
 */
const CHECK = `
  select c.organization_id, l.id, l.status, l.expires_at, l.max_machines, m.license_id is not null as known,
         r.scopes, r.effects
    from credentials c
    left join licenses l on l.organization_id = c.organization_id and l.key = $2
    left join machines m on m.license_id = l.id and m.machine_id = $3
    left join lateral (
      select array_agg(a.scope) as scopes,
             array_agg(case when a.kind = 'BLACKLIST' then 1 when a.allow_suspended_or_expired then 3 else 2 end) as effects
        from (select unnest($4::text[]) as type, unnest($5::bytea[]) as value
              union all select 'CUSTOMER', convert_to(l.customer_id::text, 'UTF8')) v
        join access_rules a on a.organization_id = l.organization_id and a.type = v.type and a.value = v.value
       where (a.scope_id is null or a.scope_id in (l.product_id, l.id)) and (a.expires_at is null or a.expires_at > now())
         and a.mode = 'ENFORCE' and a.kind in ('BLACKLIST', 'EXCLUSION')
    ) r on true
   where c.secret_hash = $1 and c.kind = 'API_KEY' and c.revoked_at is null and c.product_id is null
     and (c.expires_at is null or c.expires_at > now())`

interface Row {
  organization_id: string
  /** The id of the license, or null if no license has the key. */
  id: string | null
  status: License['status']
  expires_at: Date | null
  max_machines: number | null
  known: boolean
  scopes: (keyof typeof SCOPE)[] | null
  effects: Match['effect'][] | null
}

// By default, Postgres plans this statement again for each check, because it overestimates the length of the arrays. Planning takes five
// times as long as executing.
const url = new URL(process.env['DATABASE_URL'] ?? '')
url.searchParams.set('options', '-c plan_cache_mode=force_generic_plan')
const pool = createPool(url.toString(), { name: 'baseline-express-postgres', max: 10 })
/** The prefix lengths of an organization's address rules, by the hash of its API key. They are read once. */
const lengths = new Map<string, Promise<PrefixLengths>>()

function lengthsOf(hash: Buffer): Promise<PrefixLengths> {
  const key = hash.toString('base64')
  const known = lengths.get(key) ?? readLengths(hash)
  lengths.set(key, known)
  return known
}

async function readLengths(hash: Buffer): Promise<PrefixLengths> {
  const { rows } = await pool.query<{ value: string }>(
    `select distinct on (family(network), masklen(network)) network::text as value
       from (select convert_from(value, 'UTF8')::cidr as network from access_rules
              where type = 'IP' and organization_id = (select organization_id from credentials where secret_hash = $1)) n`,
    [hash],
  )
  const found = new PrefixLengths()
  for (const { value } of rows) found.add(value)
  return found
}

async function lookUp(
  hash: Buffer,
  { licenseKey, machineId }: Request,
  address: string,
  country: string | undefined,
): Promise<Row | undefined> {
  const networks = (await lengthsOf(hash)).networksOf(address)
  const types: string[] = networks.map(() => 'IP')
  const values = networks.map((network) => Buffer.from(network))
  if (machineId !== '') {
    types.push('HWID')
    values.push(Buffer.from(machineId))
  }
  if (country !== undefined) {
    types.push('COUNTRY')
    values.push(Buffer.from(country))
  }
  const { rows } = await pool.query<Row>({
    name: 'check',
    text: CHECK,
    values: [hash, licenseKey, Buffer.from(machineId), types, values],
  })
  return rows[0]
}

/** Takes a slot for a new machine, or records the machine if the license has no limit. The row lock serializes the claims of a license. */
async function claim(licenseId: string, limit: number | null, machineId: Buffer): Promise<boolean> {
  const client = await pool.connect()
  let failure: Error | undefined
  try {
    await client.query('begin')
    const granted = await claimInTransaction(client, licenseId, limit, machineId)
    await client.query('commit')
    return granted
  } catch (error) {
    failure = error instanceof Error ? error : new Error(String(error))
    throw failure
  } finally {
    client.release(failure)
  }
}

async function claimInTransaction(
  client: pg.PoolClient,
  licenseId: string,
  limit: number | null,
  machineId: Buffer,
): Promise<boolean> {
  const { rows } = await client.query<{ used: number }>(
    'select used from license_slots where license_id = $1 for no key update',
    [licenseId],
  )
  const { rowCount } = await client.query('select from machines where license_id = $1 and machine_id = $2', [
    licenseId,
    machineId,
  ])
  if (rowCount === 1) return true
  if (limit !== null && (rows[0]?.used ?? 0) >= limit) return false
  await client.query('insert into machines (id, license_id, machine_id) values (gen_random_uuid(), $1, $2)', [
    licenseId,
    machineId,
  ])
  await client.query('update license_slots set used = used + 1 where license_id = $1', [licenseId])
  return true
}

const app = express()
app.disable('x-powered-by').disable('etag')
app.use(express.json({ limit: '16kb' }))

app.post('/api/v2/license/validate', (request, response, next) => {
  check(request).then(({ status, body }) => void response.status(status).json(body), next)
})

async function check(request: express.Request): Promise<{ status: number; body: object }> {
  const secret = request.headers.authorization?.slice('Bearer '.length) ?? ''
  const hash = createHash('sha256').update(secret).digest()
  const read = readRequest(request.body)
  if (read === null) return problem(422, 'INVALID_REQUEST', 'license must be a string.')
  const address = clientAddress(request.headers['x-forwarded-for'], request.socket.remoteAddress)
  const row = await lookUp(hash, read, address, request.get('x-country'))
  if (row === undefined) return problem(401, 'UNAUTHORIZED', 'The API key is missing or unknown.')
  const { id, status, expires_at: expiresAt, max_machines: maxMachines } = row
  const license: License | null =
    id === null
      ? null
      : {
          status,
          expiresAtMs: expiresAt?.getTime() ?? Infinity,
          expiresAt: expiresAt?.toISOString() ?? null,
          maxMachines,
        }
  const matches = row.scopes?.map((scope, n): Match => ({
    scope: SCOPE[scope],
    effect: row.effects?.[n] ?? EFFECT.blacklist,
  }))
  return decide(license, matches ?? [], read.machineId, row.known, () =>
    id === null ? Promise.resolve(false) : claim(id, maxMachines, Buffer.from(read.machineId)),
  )
}

function problem(status: number, code: string, message: string): { status: number; body: object } {
  return { status, body: { status, code, message } }
}

const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('the server has no port')
  announce(address.port, () => server.close())
})
