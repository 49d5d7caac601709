import { createHash } from 'node:crypto'

// No database in the way, but the obvious data structures: Express, Maps of objects, and every rule of the organization compared
// in turn, addresses with ipaddr.js (parsed once, when they are loaded).
import { createPool } from '@keyward/database'
import express, { type Request, type Response } from 'express'
import ipaddr from 'ipaddr.js'

import { announce } from './announce.ts'

interface Body {
  license?: string
  fingerprint?: string
}

interface License {
  organization_id: string
  id: string
  product_id: string
  customer_id: string
  status: string
  expires_at: Date | null
  max_machines: number | null
  machines: Set<string>
}

interface Rule {
  organization_id: string
  kind: 'BLACKLIST' | 'EXCLUSION'
  type: 'IP' | 'HWID' | 'COUNTRY' | 'CUSTOMER'
  value: string
  scope: 'ORGANIZATION' | 'PRODUCT' | 'LICENSE'
  scope_id: string | null
  network: [ipaddr.IPv4 | ipaddr.IPv6, number] | null
}

const SPECIFICITY = { LICENSE: 3, PRODUCT: 2, ORGANIZATION: 1 }

const credentials = new Map<string, string>()
const licenses = new Map<string, License>()
const rules = new Map<string, Rule[]>()
await load()

const app = express()
app.set('trust proxy', true)
app.use(express.json())
app.post('/api/v2/license/validate', (request: Request<object, object, Body>, response) => {
  const organization = credentials.get(hash(request.get('authorization')?.slice('Bearer '.length) ?? ''))
  if (organization === undefined) {
    response.status(401).json({ status: 401, code: 'UNAUTHORIZED' })
    return
  }
  const license = licenses.get(`${organization} ${request.body.license ?? ''}`)
  const code = license === undefined ? 'NOT_FOUND' : decide(license, request.body.fingerprint ?? '', request.ip ?? '')
  answer(response, license, code)
})
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address()
  announce(typeof address === 'object' && address !== null ? address.port : 0, () => void server.close())
})

function decide(license: License, machine: string, ip: string): string {
  const address = ipaddr.isValid(ip) ? ipaddr.process(ip) : null
  const matching = (rules.get(license.organization_id) ?? []).filter((rule) => matches(rule, license, machine, address))
  const best = Math.max(0, ...matching.map((rule) => SPECIFICITY[rule.scope]))
  const deciding = matching.filter((rule) => SPECIFICITY[rule.scope] === best)
  const excluded = deciding.some((rule) => rule.kind === 'EXCLUSION')
  if (deciding.length > 0 && !excluded) return 'BLACKLISTED'
  if (license.status !== 'active') return license.status.toUpperCase()
  if (license.expires_at !== null && license.expires_at.getTime() <= Date.now()) return 'EXPIRED'
  if (excluded || license.max_machines === null || license.machines.has(machine)) return 'VALID'
  return license.machines.size < license.max_machines ? 'VALID' : 'TOO_MANY_MACHINES'
}

function matches(rule: Rule, license: License, machine: string, address: ipaddr.IPv4 | ipaddr.IPv6 | null): boolean {
  if (rule.scope_id !== null && rule.scope_id !== license.id && rule.scope_id !== license.product_id) return false
  switch (rule.type) {
    case 'IP':
      return (
        address !== null &&
        rule.network !== null &&
        rule.network[0].kind() === address.kind() &&
        address.match(rule.network)
      )
    case 'HWID':
      return rule.value === machine
    case 'CUSTOMER':
      return rule.value === license.customer_id
    case 'COUNTRY':
      return false
    default:
      return rule.type satisfies never
  }
}

function answer(response: Response, license: License | undefined, code: string): void {
  if (code !== 'VALID') response.status(400).json({ valid: false, status: 400, message: 'Refused.', code })
  else
    response.json({
      valid: true,
      status: 200,
      message: 'The license is valid.',
      code,
      expiresAt: license?.expires_at ?? null,
    })
}

function hash(secret: string): string {
  return createHash('sha256').update(secret).digest('hex')
}

async function load(): Promise<void> {
  const pool = createPool(process.env['DATABASE_URL'] ?? '', { name: 'baseline-express-scan', statementTimeoutMs: 0 })
  const keys = await pool.query<{ organization_id: string; hash: string }>(
    `select organization_id, encode(secret_hash, 'hex') as hash from credentials where kind = 'API_KEY'`,
  )
  for (const key of keys.rows) credentials.set(key.hash, key.organization_id)
  const byId = new Map<string, License>()
  const found = await pool.query<License & { key: string }>(
    'select organization_id, id, product_id, customer_id, key, status, expires_at, max_machines from licenses',
  )
  for (const { key, ...row } of found.rows) {
    const license = { ...row, machines: new Set<string>() }
    byId.set(row.id, license)
    licenses.set(`${row.organization_id} ${key}`, license)
  }
  const machines = await pool.query<{ license_id: string; machine: string }>(
    `select license_id, convert_from(machine_id, 'UTF8') as machine from machines`,
  )
  for (const { license_id, machine } of machines.rows) byId.get(license_id)?.machines.add(machine)
  const listed = await pool.query<Omit<Rule, 'network'>>(
    `select organization_id, kind, type, convert_from(value, 'UTF8') as value, scope, scope_id from access_rules`,
  )
  for (const row of listed.rows) {
    const network = row.type === 'IP' ? parseNetwork(row.value) : null
    const own = rules.get(row.organization_id) ?? []
    own.push({ ...row, network })
    rules.set(row.organization_id, own)
  }
  await pool.end()
}

function parseNetwork(value: string): [ipaddr.IPv4 | ipaddr.IPv6, number] {
  return ipaddr.parseCIDR(value.includes('/') ? value : `${value}/${value.includes(':') ? 128 : 32}`)
}
