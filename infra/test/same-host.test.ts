/** Runs the balancers with the settings of docs/operations/install.md for a validator on the same host, which serves on a Unix socket. */

import { chmodSync, readFileSync } from 'node:fs'
import { request } from 'node:https'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'

import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertOrganization,
  insertRule,
  startValidatorProcess,
  type TestDatabase,
} from '@keyward/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

import { type Balancer, Haproxy, isInstalled } from '../cluster/balancer.ts'
import { freePort } from '../shared/ports.ts'
import { Nginx } from './nginx.ts'

const install = readFileSync(new URL('../../docs/operations/install.md', import.meta.url), 'utf8')
const setting = (pattern: RegExp): string => pattern.exec(install)?.[0] ?? 'the page lacks the setting'

let database: TestDatabase
let secret: string
let key: string

beforeAll(async () => {
  database = await createTestDatabase()
  const organizationId = await insertOrganization(database.pool)
  secret = (await insertApiKey(database.pool, { organizationId })).secret
  key = (await insertLicense(database.pool, { organizationId, maxMachines: null })).key
  await insertRule(database.pool, { organizationId, type: 'IP', value: '127.0.0.1' })
})
afterAll(() => database.drop())

const programs = [
  {
    name: 'haproxy',
    flag: '-v',
    configuration: 'haproxy/haproxy.cfg',
    make: (): Balancer => new Haproxy(),
    server: setting(/server validator-1 unix@\S+ port 9080 addr 127\.0\.0\.1/),
    servers: / server validator-[23] .*$/gm,
    replaced: / server validator-1 validator-1:8080 port 9080$/gm,
  },
  {
    name: 'nginx',
    flag: '-v',
    configuration: 'nginx/nginx.conf',
    make: (): Balancer => new Nginx(),
    server: setting(/server unix:\S+ max_fails=1 fail_timeout=1s;/),
    servers: / server validator-[23]:.*$/gm,
    replaced: / server validator-1:8080 .*$/gm,
  },
]

test.each(programs)('$name sends checks over the socket, with the address of the caller', async (program) => {
  if (!isInstalled(program.name, program.flag) || !isInstalled('openssl', 'version')) return
  const balancer = program.make()
  const socket = join(balancer.folder, 'validator.sock')
  const validator = await startValidatorProcess(database, { VALIDATOR_SOCKET: socket })
  chmodSync(socket, 0o666) // A balancer that is started as root runs as another user.
  const ports = { https: await freePort(), http: await freePort(), metrics: await freePort() }
  const place = (configuration: string): string =>
    configuration
      .replace(/(bind|listen) :?443\b/, `$1 127.0.0.1:${ports.https}`)
      .replace(/(bind|listen) :?80\b/, `$1 127.0.0.1:${ports.http}`)
      .replace('bind :8404', `bind 127.0.0.1:${ports.metrics}`)
      .replaceAll(program.servers, '')
      .replaceAll(program.replaced, ` ${program.server}`)
      .replaceAll('/run/keyward/validator-1.sock', socket)
      .replaceAll('port 9080', `port ${new URL(validator.adminUrl).port}`)
      .replaceAll(/management-\d:8081/g, '127.0.0.1:1')
  try {
    await balancer.start(program.configuration, ports, place)
    const check = async (): Promise<string> => {
      const response = await new Promise<NodeJS.ReadableStream>((resolve, reject) => {
        const sent = request(
          {
            host: '127.0.0.1',
            port: ports.https,
            path: '/api/v2/license/validate',
            method: 'POST',
            headers: { authorization: `Bearer ${secret}`, 'x-forwarded-for': '192.0.2.1' },
            rejectUnauthorized: false,
            agent: false,
          },
          resolve,
        )
        sent.on('error', reject).end(JSON.stringify({ license: key, fingerprint: 'm1' }))
      })
      return text(response)
    }
    // The rule blocks the address of the caller, which only the balancer's header contains.
    await expect.poll(check, { timeout: 10_000 }).toContain('"BLACKLISTED"')
  } finally {
    await balancer.stop()
    await validator.stop()
  }
})
