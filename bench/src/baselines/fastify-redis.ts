/**
 * Fastify with Redis: one script on the Redis server reads everything that a check needs, and the app server decides. Redis runs on the
 * same machine, is connected by a Unix socket, and has its data in memory only. The baseline records nothing, and its data does not follow
 * changes.
 */

import { createHash } from 'node:crypto'
import { join } from 'node:path'

import { createClient } from '@redis/client'
import Fastify from 'fastify'

import { announce, serverFolder, startCompanion } from './companion.ts'
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
import { readWorld } from './world.ts'

/**
 * KEYS: the license, then one key for each rule value that matches the check. ARGV: the prefix of the organization's rules about customers,
 * and the machine id. Returns the license, whether the machine is known, and the rules with these values as one text. Returns null for an
 * unknown license key.
 */
const LOOK_UP = `
local license = redis.call('GET', KEYS[1])
if not license then return false end
local number, customer = string.match(license, '^(%d+)|%d+|(%d+)|')
local found, known = {}, 0
for _, list in ipairs(redis.call('MGET', ARGV[1] .. customer, unpack(KEYS, 2))) do
  if list then found[#found + 1] = list end
end
if ARGV[2] ~= '' then known = redis.call('SISMEMBER', 'm:' .. number, ARGV[2]) end
return { license, known, table.concat(found) }`

/**
 * KEYS: the set of machines. ARGV: the machine id, and the machine limit or an empty text. Returns 1 if the machine has a slot, otherwise
 * 0.
 */
const CLAIM = `
if ARGV[2] ~= '' and redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 0
  and redis.call('SCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('SADD', KEYS[1], ARGV[1])
return 1`

const STATUSES: Record<string, License['status']> = { a: 'active', s: 'suspended', r: 'revoked' }
const EFFECTS: Record<string, Match['effect']> = {
  B: EFFECT.blacklist,
  E: EFFECT.exclusion,
  A: EFFECT.exclusionThatAllows,
}
/** The number of keys that are written to Redis at once while the data is loaded. */
const LOADED_TOGETHER = 5000
/** The time for which the app server caches the organization of an API key. */
const CREDENTIAL_LIFE_MS = 1000

const folder = serverFolder()
const path = join(folder.path, 'redis.sock')
const settings = ['--port', '0', '--unixsocket', path, '--save', '', '--appendonly', 'no', '--dir', folder.path]
const server = await startCompanion(['redis-server', ...settings], { path })
const redis = await createClient({ socket: { path, tls: false } }).connect()
const lengths = new Map<string, PrefixLengths>()
await load(process.env['DATABASE_URL'] ?? '')
const [lookUpSha, claimSha] = await Promise.all([redis.scriptLoad(LOOK_UP), redis.scriptLoad(CLAIM)])

async function load(databaseUrl: string): Promise<void> {
  const text = (base64: string): string => Buffer.from(base64, 'base64').toString()
  const lists = new Map<string, string>()
  const values: [string, string][] = []
  const machines = new Map<string, string[]>()
  const send = async (): Promise<void> => {
    const sets = [...machines].map(([license, members]) => redis.sAdd(`m:${license}`, members))
    const strings = values.length === 0 ? [] : [redis.mSet(values)]
    machines.clear()
    values.length = 0
    await Promise.all([...sets, ...strings])
  }
  await readWorld(databaseUrl, ([kind = '', ...columns]) => {
    const [first = '', second = '', third = '', fourth = '', fifth = '', sixth = ''] = columns
    if (kind === 'C') values.push([`c:${first}`, `${second}|${third}`])
    if (kind === 'L') values.push([`l:${first}:${text(second)}`, columns.slice(2).join('|')])
    if (kind === 'M') machines.set(first, [...(machines.get(first) ?? []), text(second)])
    if (kind === 'R') {
      const key = ruleKey(first, second, text(third))
      lists.set(key, `${lists.get(key) ?? ''}${fourth}=${fifth}${sixth};`)
      if (second === 'I') lengthsOf(first).add(text(third))
    }
    return values.length + machines.size < LOADED_TOGETHER ? undefined : send()
  })
  values.push(...lists)
  await send()
}

function lengthsOf(organization: string): PrefixLengths {
  const known = lengths.get(organization) ?? new PrefixLengths()
  lengths.set(organization, known)
  return known
}

function ruleKey(organization: string, type: string, value: string): string {
  return `r:${organization}:${type}:${value}`
}

interface Found {
  /** The Redis key of the set that contains the license's machines. */
  machines: string
  license: License
  isKnown: boolean
  matches: Match[]
}

async function lookUp(
  organization: string,
  { licenseKey, machineId }: Request,
  address: string,
  country: string | undefined,
): Promise<Found | null> {
  const keys = [`l:${organization}:${licenseKey}`]
  if (machineId !== '') keys.push(ruleKey(organization, 'H', machineId))
  if (country !== undefined) keys.push(ruleKey(organization, 'C', country))
  for (const network of lengths.get(organization)?.networksOf(address) ?? [])
    keys.push(ruleKey(organization, 'I', network))
  const found = await redis.evalSha(lookUpSha, { keys, arguments: [ruleKey(organization, 'U', ''), machineId] })
  if (!Array.isArray(found)) return null
  const [row, known, rules] = found
  if (typeof row !== 'string' || typeof rules !== 'string') return null
  const [number = '', product = '', , status = '', expires = '', text = '', limit = ''] = row.split('|')
  return {
    machines: `m:${number}`,
    license: {
      status: STATUSES[status] ?? 'revoked',
      expiresAtMs: expires === '' ? Infinity : Number(expires),
      expiresAt: text === '' ? null : text,
      maxMachines: limit === '' ? null : Number(limit),
    },
    isKnown: known === 1,
    matches: rules === '' ? [] : matchesIn(rules, number, product),
  }
}

/** Returns the unexpired rules of a list that have the license, its product or the organization as scope. */
function matchesIn(list: string, number: string, product: string): Match[] {
  return list
    .split(';')
    .slice(0, -1)
    .flatMap((rule) => {
      const [scope = '', effect = ''] = rule.split('=')
      const expires = effect.slice(1)
      if (expires !== '' && Number(expires) <= Date.now()) return []
      const level =
        scope === 'O'
          ? SCOPE.ORGANIZATION
          : scope === `P${product}`
            ? SCOPE.PRODUCT
            : scope === `L${number}`
              ? SCOPE.LICENSE
              : 0
      return level === 0 ? [] : [{ scope: level, effect: EFFECTS[effect.charAt(0)] ?? EFFECT.blacklist }]
    })
}

async function claim({ machines, license }: Found, machineId: string): Promise<boolean> {
  const limit = license.maxMachines === null ? '' : String(license.maxMachines)
  return (await redis.evalSha(claimSha, { keys: [machines], arguments: [machineId, limit] })) === 1
}

const organizations = new Map<string, { organization: string; untilMs: number }>()

async function authenticate(header: string | undefined): Promise<string | null> {
  const secret = header?.slice('Bearer '.length) ?? ''
  const cached = organizations.get(secret)
  if (cached !== undefined && cached.untilMs > Date.now()) return cached.organization
  const entry = await redis.get(`c:${createHash('sha256').update(secret).digest('base64')}`)
  const [organization = '', expires = ''] = entry?.split('|') ?? []
  if (organization === '' || (expires !== '' && Number(expires) <= Date.now())) return null
  organizations.set(secret, { organization, untilMs: Date.now() + CREDENTIAL_LIFE_MS })
  return organization
}

const app = Fastify()

app.post('/api/v2/license/validate', async (request, reply) => {
  const organization = await authenticate(request.headers.authorization)
  if (organization === null)
    return reply.code(401).send({ status: 401, code: 'UNAUTHORIZED', message: 'The API key is missing or unknown.' })
  const check = readRequest(request.body)
  if (check === null)
    return reply.code(422).send({ status: 422, code: 'INVALID_REQUEST', message: 'license must be a string.' })
  const address = clientAddress(request.headers['x-forwarded-for'], request.socket.remoteAddress)
  const country = request.headers['x-country']
  const found = await lookUp(organization, check, address, typeof country === 'string' ? country : undefined)
  const verdict = await decide(
    found?.license ?? null,
    found?.matches ?? [],
    check.machineId,
    found?.isKnown === true,
    () => (found === null ? Promise.resolve(false) : claim(found, check.machineId)),
  )
  return reply.code(verdict.status).send(verdict.body)
})

const address = await app.listen({ host: '127.0.0.1', port: 0 })
announce(Number(new URL(address).port), () => {
  void app.close()
  server.stop()
  folder.remove()
})
