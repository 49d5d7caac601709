/**
 * A well-tuned version of the usual first implementation: Fastify, with one prepared SQL statement per check that finds every row by an
 * index. It has no address rules, country rules or slots.
 */

import { createHash } from 'node:crypto'

import { createPool } from '@keyward/database'
import Fastify from 'fastify'

import { announce } from './announce.ts'

const CHECK = {
  name: 'check',
  text: `
    select l.status, l.expires_at, l.max_machines, s.used, m.license_id is not null as known, r.kind
      from credentials c
      join licenses l on l.organization_id = c.organization_id and l.key = $2
      join license_slots s on s.license_id = l.id
      left join machines m on m.license_id = l.id and m.machine_id = $3
      left join lateral (
        select kind from (
          select kind, scope from access_rules
           where organization_id = l.organization_id and kind in ('BLACKLIST', 'EXCLUSION') and type = 'HWID' and value = $3
             and (scope_id is null or scope_id in (l.product_id, l.id)) and (expires_at is null or expires_at > now())
          union all
          select kind, scope from access_rules
           where organization_id = l.organization_id and customer_id = l.customer_id
             and (scope_id is null or scope_id in (l.product_id, l.id)) and (expires_at is null or expires_at > now())
        ) matching
         order by scope = 'ORGANIZATION', scope = 'PRODUCT', kind desc
         limit 1
      ) r on true
     where c.secret_hash = $1 and c.kind = 'API_KEY' and c.revoked_at is null
       and (c.expires_at is null or c.expires_at > now())`,
}

interface Row {
  status: 'active' | 'suspended' | 'revoked'
  expires_at: Date | null
  max_machines: number | null
  used: number
  known: boolean
  kind: 'BLACKLIST' | 'EXCLUSION' | null
}

const pool = createPool(process.env['DATABASE_URL'] ?? '', { name: 'baseline-fastify-sql', max: 10 })
const server = Fastify()

server.post<{ Body: { license: string; fingerprint?: string } }>(
  '/api/v2/license/validate',
  {
    schema: {
      body: {
        type: 'object',
        required: ['license'],
        properties: { license: { type: 'string' }, fingerprint: { type: 'string' } },
      },
    },
  },
  async (request, reply) => {
    const secret = request.headers.authorization?.slice('Bearer '.length) ?? ''
    const secretHash = createHash('sha256').update(secret).digest()
    const machineId = Buffer.from(request.body.fingerprint ?? '')
    const { rows } = await pool.query<Row>({ ...CHECK, values: [secretHash, request.body.license, machineId] })
    const code = decide(rows[0])
    if (code !== 'VALID') return reply.code(400).send({ valid: false, status: 400, message: 'Rejected.', code })
    return { valid: true, status: 200, message: 'The license is valid.', code, expiresAt: rows[0]?.expires_at ?? null }
  },
)

function decide(row: Row | undefined): string {
  if (row === undefined) return 'NOT_FOUND'
  if (row.kind === 'BLACKLIST') return 'BLACKLISTED'
  if (row.status === 'revoked') return 'REVOKED'
  if (row.status === 'suspended') return 'SUSPENDED'
  if (row.expires_at !== null && row.expires_at.getTime() <= Date.now()) return 'EXPIRED'
  if (row.kind === 'EXCLUSION' || row.known || row.max_machines === null || row.used < row.max_machines) return 'VALID'
  return 'TOO_MANY_MACHINES'
}

const address = await server.listen({ host: '127.0.0.1', port: 0 })
announce(Number(new URL(address).port), () => void server.close())
