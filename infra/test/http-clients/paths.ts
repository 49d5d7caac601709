/**
 * Starts a validator, and in front of it the gateway of `npm start`, haproxy and nginx. The balancers run with the shipped configuration,
 * but without TLS, so that clients need no certificate.
 */

import {
  createTestDatabase,
  insertApiKey,
  insertLicense,
  insertOrganization,
  startValidatorProcess,
} from '@keyward/testkit'

import { type Balancer, Haproxy, isInstalled } from '../../cluster/balancer.ts'
import { freePort } from '../../shared/ports.ts'
import { startGateway } from '../../start/gateway.ts'
import { Nginx } from '../nginx.ts'

export interface Paths {
  apiKey: string
  license: string
  /** The base address of each path by name. Balancers that are not installed are missing. */
  urls: ReadonlyMap<string, string>
  close(): Promise<void>
}

interface BalancerKind {
  name: string
  configuration: string
  make: () => Balancer
  isAvailable: boolean
  plain: (text: string, port: number, metrics: number) => string
}

const hasOpenssl = isInstalled('openssl', 'version')

const KINDS: readonly BalancerKind[] = [
  {
    name: 'haproxy',
    configuration: 'haproxy/haproxy.cfg',
    make: () => new Haproxy(),
    isAvailable: hasOpenssl && isInstalled('haproxy', '-v'),
    plain: plainHaproxy,
  },
  {
    name: 'nginx',
    configuration: 'nginx/nginx.conf',
    make: () => new Nginx(),
    isAvailable: hasOpenssl && isInstalled('nginx', '-v'),
    plain: (text, port) =>
      text
        .replace(/server \{\s+listen 80;[^}]*\}/, '')
        .replace('listen 443 ssl http2;', `listen 127.0.0.1:${port};`)
        .replaceAll(/^ *ssl_certificate.*\n/gm, ''),
  },
]

function plainHaproxy(text: string, port: number, metrics: number): string {
  return text
    .replace(/^ *bind :443 .*$/m, `    bind 127.0.0.1:${port}`)
    .replace(/^ *bind :80\n/m, '')
    .replace(/^ *http-request redirect scheme https .*\n/m, '')
    .replace('bind :8404', `bind 127.0.0.1:${metrics}`)
}

/**
 * Replaces the address of every validator in a configuration with that of the started one, and every address of management with a closed
 * port.
 */
function place(text: string, port: number, adminPort: string): string {
  return text
    .replaceAll(/validator-\d:\d+ port \d+/g, `127.0.0.1:${port} port ${adminPort}`)
    .replaceAll(/validator-\d:\d+/g, `127.0.0.1:${port}`)
    .replaceAll(/management-\d:\d+/g, '127.0.0.1:9')
}

export async function startPaths(): Promise<Paths> {
  const database = await createTestDatabase()
  const organizationId = await insertOrganization(database.pool)
  const { secret } = await insertApiKey(database.pool, { organizationId })
  const { key } = await insertLicense(database.pool, { organizationId, maxMachines: null })
  const validator = await startValidatorProcess(database, { CORS_ORIGINS: '*' })
  const direct = `http://127.0.0.1:${validator.port}`
  const gateway = await startGateway(0, { validator: () => direct, management: () => direct })
  const urls = new Map([
    ['direct', direct],
    ['gateway', `http://127.0.0.1:${gateway.port}`],
  ])
  const balancers: Balancer[] = []
  for (const { name, configuration, make, isAvailable, plain } of KINDS) {
    if (!isAvailable) continue
    const ports = { https: await freePort(), http: await freePort(), metrics: await freePort() }
    const balancer = make()
    await balancer.start(configuration, ports, (text) =>
      place(plain(text, ports.https, ports.metrics), validator.port, new URL(validator.adminUrl).port),
    )
    balancers.push(balancer)
    urls.set(name, `http://127.0.0.1:${ports.https}`)
  }
  return {
    apiKey: secret,
    license: key,
    urls,
    async close() {
      await Promise.all(balancers.map((balancer) => balancer.stop()))
      await gateway.close()
      await validator.stop()
      await database.drop()
    },
  }
}
