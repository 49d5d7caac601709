/**
 * Tests that no address or country of a check is stored (docs/api.md#d1). Checks of every outcome have known addresses and
 * countries. All programs log at their most verbose level, and Postgres logs every statement with its parameters.
 * Afterwards no spelling of the addresses may be in a table, the data folder, a log, a statement, a metric or a response.
 * Values of rules are stored data of the vendor. The rules of this test therefore match addresses of checks only by ranges, never
 * by the whole address.
 */

import { join } from 'node:path'

import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import {
  endChildren,
  OPERATOR_TOKEN,
  type Service,
  startManagement,
  startValidator,
  until,
  untilReady,
} from '../faults/support/children.ts'
import { createPostgres, openPool, type TestPostgres } from '../faults/support/postgres.ts'
import { ask, type Caller, CALLERS, forwardedBy, JUNK, PEERS, type Request } from './support/callers.ts'
import { createCases, createLicenses, type Licenses, newMachine } from './support/cases.ts'
import { dumpDatabase } from './support/dump.ts'
import { type Found, Search } from './support/search.ts'
import { needlesOf, needlesOfText } from './support/spellings.ts'

/** Settings with which Postgres logs every statement, its parameters, its duration and every error. */
const TALKATIVE = {
  log_statement: 'all',
  log_min_duration_statement: 0,
  log_parameter_max_length: -1,
  log_parameter_max_length_on_error: -1,
  log_min_error_statement: 'error',
  log_error_verbosity: 'verbose',
  log_connections: 'on',
  log_disconnections: 'on',
  track_activity_query_size: 65_536,
  shared_preload_libraries: 'pg_stat_statements',
  'pg_stat_statements.track': 'all',
}

const addresses = [...CALLERS.map(({ address }) => address), ...PEERS]
const countries = [...new Set(CALLERS.map(({ country }) => country))]
const search = new Search([
  ...addresses.flatMap(needlesOf),
  // The search includes the whole value of a header, with port, brackets and capitals.
  ...CALLERS.flatMap(({ address, sent }) => needlesOfText(address, sent)),
  ...JUNK.filter((junk) => !addresses.some((address) => junk.includes(address))).flatMap((junk) =>
    needlesOfText(junk, junk),
  ),
])
/** Matches a country as a word, and as hexadecimal digits of its bytes. */
const countryWords = new RegExp(
  countries.map((country) => `\\b${country}\\b|x${Buffer.from(country).toString('hex')}\\b`).join('|'),
)

let postgres: TestPostgres
let pool: ReturnType<typeof openPool>
let management: Service
let secret: string
let managementToken: string
let licenses: Licenses
/** The text of all responses. */
const answers: string[] = []
const metrics: string[] = []
const sampled: string[] = []
const programs: Service[] = []

beforeAll(async () => {
  postgres = await createPostgres(TALKATIVE)
  pool = openPool(postgres.url)
  await pool.query('create extension pg_stat_statements')
  // By default, the embedded server logs no details, such as the parameters of statements.
  await pool.query('alter role all set log_error_verbosity = verbose')
  management = await startManagement(postgres.url, {
    LOG_LEVEL: 'trace',
    TRUSTED_PROXIES: 'all',
    COUNTRY_HEADER: 'x-country',
  })
  const organization = await createOrganization()
  secret = organization.apiKey
  managementToken = organization.managementToken
  licenses = await createLicenses(pool, organization.id)
  await pool.query('select pg_stat_statements_reset()')
  postgres.logged.length = 0 // Excludes the statements of the vendor's setup.
})
afterAll(async () => {
  await endChildren()
  if (!pool.ended) await pool.end()
  await postgres.remove()
})

async function createOrganization(): Promise<{ id: string; apiKey: string; managementToken: string }> {
  const response = await fetch(`http://127.0.0.1:${management.port}/api/v1/organizations`, {
    method: 'POST',
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Acme', plan: 'STANDARD' }),
  })
  return z.object({ id: z.string(), apiKey: z.string(), managementToken: z.string() }).parse(await response.json())
}

const codes = new Map<Service, Set<string>>()

async function send(program: Service, request: Request): Promise<string> {
  const { text, code } = await ask(program.port, request)
  answers.push(text)
  codes.set(program, (codes.get(program) ?? new Set()).add(code))
  return code
}

/** Sends every case of one caller, eight at a time. */
async function sendAll(program: Service, requests: readonly Request[]): Promise<void> {
  const waiting = [...requests]
  const work = async (): Promise<void> => {
    for (let request = waiting.shift(); request; request = waiting.shift()) await send(program, request)
  }
  await Promise.all(Array.from({ length: 8 }, work))
}

async function readMetrics(): Promise<void> {
  for (const { adminPort } of programs)
    for (const path of ['/metrics', '/readyz', '/livez'])
      metrics.push(await (await fetch(`http://127.0.0.1:${adminPort}${path}`)).text())
}

/** Collects the current statement of every connection repeatedly. Returns a function that stops the collection. */
function sampleActivity(): () => Promise<void> {
  const state = { isDone: false }
  const sampling = (async () => {
    while (!state.isDone) {
      const { rows } = await pool.query<{ row: string }>('select a::text as row from pg_stat_activity a')
      sampled.push(...rows.map(({ row }) => row))
    }
  })()
  return async () => {
    state.isDone = true
    await sampling
  }
}

/** Sends checks while Postgres fails: with a locked row, with cut connections, and with a stopped server. */
async function sendThroughErrors(program: Service, callers: readonly Caller[]): Promise<void> {
  const claims = callers.map((caller) => ({
    path: '/api/v2/license/validate',
    secret,
    body: { license: licenses.limited.key, fingerprint: newMachine() },
    headers: forwardedBy(caller),
  }))
  const client = await pool.connect()
  await client.query('begin')
  await client.query('select from license_slots where license_id = $1 for update', [licenses.limited.id])
  await sendAll(program, claims)
  await client.query('rollback')
  client.release()
  await pool.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'keyward validator%'`,
  )
  await sendAll(program, claims)
}

/** Decodes a license file without its signature, because random letters may contain country codes. */
const opened = (text: string): string =>
  text.replaceAll(/([\w-]+)\.[\w-]{86}\b/g, (_, payload: string) => Buffer.from(payload, 'base64url').toString())
const wordsOf = (text: string): string[] => text.split('\n').filter((line) => countryWords.test(line))

test('stores no address and no country of a check, whatever its outcome', { timeout: 600_000 }, async () => {
  const trace = { LOG_LEVEL: 'trace', VALIDATOR_WORKERS: '2' }
  const behindEdge = await startValidator(postgres.validatorUrl, { ...trace, TRUSTED_PROXIES: 'all' })
  const behindProxy = await startValidator(postgres.validatorUrl, {
    ...trace,
    TRUSTED_PROXIES: '127.0.0.0/8',
    EDGE: 'cloudflare',
    COUNTRY_HEADER: '',
  })
  const direct = await startValidator(postgres.validatorUrl, { ...trace, TRUSTED_PROXIES: '', COUNTRY_HEADER: '' })
  programs.push(behindEdge, behindProxy, direct, management)
  await untilReady(...programs)
  const stopSampling = sampleActivity()

  for (const [i, caller] of CALLERS.entries()) {
    const headers = forwardedBy(caller, CALLERS[i - 1])
    const cases = createCases(licenses, secret, { headers })
    await sendAll(behindEdge, cases)
    await sendAll(
      behindProxy,
      cases.filter((_, n) => n % 3 === 0),
    )
    const files = Object.values(licenses).map(({ key }) => ({
      path: '/api/v1/licenses/file',
      secret,
      headers,
      body: { licenseKey: key, fingerprint: key === licenses.unlimited.key ? newMachine() : 'machine-known' },
    }))
    const evaluations = Object.values(licenses).map(({ key }) => ({
      path: '/api/v1/access-rules/evaluate',
      secret: managementToken,
      headers,
      body: { licenseKey: key, ip: caller.address, machineId: 'machine-known' },
    }))
    await sendAll(management, [...files, ...evaluations])
  }
  for (const from of PEERS) await sendAll(direct, createCases(licenses, secret, { from }))
  const junk = JUNK.map((text) => ({ address: text, sent: text, country: 'QQ' }))
  for (const caller of junk) await sendAll(behindEdge, createCases(licenses, secret, { headers: forwardedBy(caller) }))
  await sendThroughErrors(behindEdge, CALLERS)
  await until(async () => {
    const { rows } = await pool.query<{ n: number }>(
      `select count(*)::int as n from activity where code = 'TOO_MANY_MACHINES'`,
    )
    return (rows[0]?.n ?? 0) >= CALLERS.length
  })
  await readMetrics()
  await stopSampling()

  const known = ['VALID', 'NOT_FOUND', 'BLACKLISTED', 'REVOKED', 'SUSPENDED', 'EXPIRED', 'FINGERPRINT_REQUIRED']
  const errors = ['TOO_MANY_MACHINES', 'INVALID_REQUEST', 'UNAUTHORIZED', 'PAYLOAD_TOO_LARGE', 'UNAVAILABLE']
  expect([...(codes.get(behindEdge) ?? [])]).toEqual(expect.arrayContaining([...known, ...errors]))
  expect([...(codes.get(behindProxy) ?? [])]).toEqual(expect.arrayContaining(known))
  expect([...(codes.get(management) ?? [])]).toEqual(
    expect.arrayContaining(['200', 'BLACKLISTED', 'EXPIRED', 'TOO_MANY_MACHINES']),
  )

  expect(await direct.stop()).toBe(0) // Writes the usage in memory.
  const dump = await dumpDatabase(pool)
  await pool.end()
  await postgres.stop('fast')
  await sendAll(
    behindEdge,
    CALLERS.flatMap((caller) => createCases(licenses, secret, { headers: forwardedBy(caller) }).slice(0, 3)),
  )
  for (const program of [behindEdge, behindProxy, management]) await program.stop()

  const outputs = programs.map((program) => program.output())
  const log = postgres.logged.join('\n')
  const folder = await search.inFolder(join(postgres.folder, 'data'))
  const found: Found[] = [
    ...[...dump].flatMap(([relation, text]) => search.in(relation, text)),
    ...folder.found,
    ...search.in('log of Postgres', log),
    ...search.in('pg_stat_activity', sampled.join('\n')),
    ...outputs.flatMap((output, i) => search.in(`output of program ${i}`, output)),
    ...search.in('metrics', metrics.join('\n')),
    ...search.in('answers', answers.join('\n')),
  ]
  expect(search.judge(found)).toEqual([])

  // Only the table of rules contains countries. System tables are not searched, because names of collations contain country codes,
  // such as `nb-SJ-x-icu`.
  const rows = [...dump].flatMap(([relation, text]) =>
    relation.startsWith('public.') && relation !== 'public.access_rules'
      ? wordsOf(text).map((line) => `${relation}: ${line}`)
      : [],
  )
  expect(rows).toEqual([])
  const files = answers.map(opened).filter((text, i) => text !== answers[i])
  expect(files.length).toBeGreaterThan(0)
  for (const file of files) expect(file).toContain('"licenseKey"')
  expect([log, ...sampled, ...outputs, ...metrics, ...answers.map(opened)].flatMap(wordsOf)).toEqual([])

  // As a control, the search must find a recorded machine id in every place that may contain an address.
  const machine = 'machine-sent-0001-by-check'
  const control = new Search(needlesOfText('machine', machine))
  expect(control.in('tables', [...dump.values()].join('\n'))).not.toEqual([])
  expect(control.in('log of Postgres', log)).not.toEqual([])
  expect((await control.inFolder(join(postgres.folder, 'data'))).found.map(({ place }) => place)).toEqual(
    expect.arrayContaining([expect.stringMatching(/^pg_wal\//), expect.stringMatching(/^base\//)]),
  )
  expect(sampled.join('\n')).toContain('write_usage')
})
