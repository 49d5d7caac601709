/** Runs nginx, Caddy and haproxy with the configurations of docs/guides/gateways.md in front of a validator and an API. */

import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertOrganization,
  insertRule,
  startValidatorProcess,
  type TestDatabase,
  type ValidatorProcess,
} from '@keyward/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { isInstalled } from '../cluster/balancer.ts'
import { freePort, listenOn } from '../shared/ports.ts'

const guide = readFileSync(new URL('../../docs/guides/gateways.md', import.meta.url), 'utf8')
const block = (language: string): string => new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(guide)?.[1] ?? ''

let database: TestDatabase
let validator: ValidatorProcess
let api: Server
let apiPort: number
let secret: string
let license: { id: string; key: string }
let organizationId: string
/** The headers of the requests that reached the API. */
const reached: IncomingHttpHeaders[] = []
let folder: string
let child: ChildProcess | null = null
let output = ''

beforeAll(async () => {
  database = await createTestDatabase()
  organizationId = await insertOrganization(database.pool)
  secret = (await insertApiKey(database.pool, { organizationId })).secret
  license = await insertLicense(database.pool, {
    organizationId,
    expiresAt: new Date('2100-01-01T00:00:00Z'),
    maxMachines: null,
  })
  const rule = { organizationId, licenseId: license.id, type: 'IP' as const, value: '127.0.0.9' }
  await insertRule(database.pool, rule)
  validator = await startValidatorProcess(database, { TRUSTED_PROXIES: '127.0.0.1' })
  api = createServer((request, response) => {
    reached.push(request.headers)
    request.resume().on('end', () => response.end(`the API received ${request.method}`))
  })
  apiPort = await listenOn(api, 0)
  folder = mkdtempSync(join(tmpdir(), 'keyward-gateways-'))
  chmodSync(folder, 0o755)
})
afterEach(async () => {
  if (child?.exitCode === null) {
    child.kill('SIGTERM')
    await once(child, 'exit')
  }
  child = null
  reached.length = 0
  output = ''
})
afterAll(async () => {
  api.close()
  await validator.stop()
  await database.drop()
  rmSync(folder, { recursive: true, force: true })
})

const isListening = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => (socket.destroy(), resolve(true)))
    socket.on('error', () => resolve(false))
  })

/** Starts the gateway of a test. `validatorPort` replaces the port of the validator. Returns the port of the gateway. */
async function start(gateway: (typeof gateways)[number], validatorPort: number): Promise<string> {
  const port = await freePort()
  const place = (text: string): string =>
    text
      .replaceAll('API_KEY', secret)
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${validatorPort}`)
      .replaceAll('127.0.0.1:3000', `127.0.0.1:${apiPort}`)
      .replaceAll('/etc/haproxy', folder)
      .replace(/(bind |listen |^):?8443/m, `$1${gateway.language === 'nginx' ? `127.0.0.1:${port}` : `:${port}`}`)
  const [program = '', ...args] = gateway.run(place)
  child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, HOME: folder } })
  child.stdout?.on('data', (data: Buffer) => (output += data.toString()))
  child.stderr?.on('data', (data: Buffer) => (output += data.toString()))
  for (let attempt = 0; !(await isListening(port)); attempt++) {
    if (attempt > 400 || child.exitCode !== null) throw new Error(`The gateway did not start: ${output}`)
    await sleep(25)
  }
  return `http://127.0.0.1:${port}/`
}

const file = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const gateways = [
  {
    name: 'nginx',
    language: 'nginx',
    isAvailable: isInstalled('nginx', '-v'),
    unavailable: 503,
    run(place: (text: string) => string) {
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
      mkdirSync(join(folder, 'temporary'), { recursive: true })
      const temporary = paths.map((one) => `${one}_temp_path ${folder}/temporary/${one};`).join('\n')
      const text = `daemon off; pid ${folder}/nginx.pid; error_log stderr; events {}\nhttp { access_log off; ${temporary}\n${place(block('nginx'))} }`
      return ['nginx', '-c', file('nginx.conf', text)]
    },
  },
  {
    name: 'Caddy',
    language: 'caddy',
    isAvailable: isInstalled('caddy', 'version'),
    unavailable: 502,
    run(place: (text: string) => string) {
      const text = `{\n admin off\n auto_https off\n}\n${place(block('caddy'))}`
      return ['caddy', 'run', '--adapter', 'caddyfile', '--config', file('Caddyfile', text)]
    },
  },
  {
    name: 'haproxy',
    language: 'haproxy',
    isAvailable: isInstalled('haproxy', '-v'),
    unavailable: 503,
    run(place: (text: string) => string) {
      file('keyward.lua', place(block('lua')))
      return ['haproxy', '-db', '-f', file('haproxy.cfg', place(block('haproxy')))]
    },
  },
]

describe.each(gateways)('$name', { timeout: 30_000 }, (gateway) => {
  const headers = (key: string, machine = 'm1') => ({ 'x-keyward-license': key, 'x-keyward-machine': machine })

  test.skipIf(!gateway.isAvailable)('forwards only requests with a valid license', async () => {
    const url = await start(gateway, validator.port)
    const valid = await fetch(url, { headers: headers(license.key) })
    expect([valid.status, await valid.text()]).toEqual([200, 'the API received GET'])
    const posted = await fetch(url, { method: 'POST', body: 'x'.repeat(100_000), headers: headers(license.key) })
    expect([posted.status, await posted.text()]).toEqual([200, 'the API received POST'])
    expect(reached).toHaveLength(2)
    expect(reached.every(({ authorization }) => authorization === undefined)).toBe(true)
    for (const sent of [headers('unknown'), {}, { 'x-keyward-machine': 'm1' }]) {
      const rejected = await fetch(url, { headers: sent })
      expect([rejected.status, rejected.headers.get('x-keyward-code')]).toEqual([403, 'NOT_FOUND'])
    }
    expect(reached).toHaveLength(2)
  })

  test.skipIf(!gateway.isAvailable)('sends the address of its peer, not the one that a header claims', async () => {
    const url = await start(gateway, validator.port)
    const claimed = { ...headers(license.key), 'x-forwarded-for': '127.0.0.9' }
    expect((await fetch(url, { headers: claimed })).status).toBe(200)
    await database.pool.query(`update access_rules set value = '127.0.0.1' where license_id = $1`, [license.id])
    await expect
      .poll(async () => (await fetch(url, { headers: claimed })).headers.get('x-keyward-code'))
      .toBe('BLACKLISTED')
    await database.pool.query(`update access_rules set value = '127.0.0.9' where license_id = $1`, [license.id])
    await expect.poll(async () => (await fetch(url, { headers: claimed })).status).toBe(200)
  })

  test.skipIf(!gateway.isAvailable)('forwards nothing while no validator responds', async () => {
    const url = await start(gateway, await freePort())
    expect((await fetch(url, { headers: headers(license.key) })).status).toBe(gateway.unavailable)
    expect(reached).toEqual([])
  })
})
