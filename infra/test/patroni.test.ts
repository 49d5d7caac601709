/** Tests infra/patroni/compose.yaml, which replaces the Postgres of compose.yaml by a Patroni cluster. */

import { readFileSync } from 'node:fs'
import { join } from 'node:path'

import { expect, test } from 'vitest'
import { z } from 'zod'

import { INFRA, readYaml } from './manifests.ts'

const read = (path: string): string => readFileSync(join(INFRA, path), 'utf8')
const hardened = z.object({ 'x-hardened': z.record(z.string(), z.unknown()) })
const service = z.looseObject({
  image: z.string(),
  networks: z.array(z.string()),
  environment: z.record(z.string(), z.string()),
  volumes: z.array(z.string()),
})
const overlay = z
  .looseObject({
    services: z.record(z.string(), service),
    networks: z.record(z.string(), z.object({ internal: z.literal(true) })),
    volumes: z.record(z.string(), z.object({})),
  })
  .parse(readYaml('patroni/compose.yaml')[0])
const settings = z
  .object({
    bootstrap: z.object({
      dcs: z.looseObject({ postgresql: z.object({ parameters: z.object({ max_connections: z.int() }) }).loose() }),
    }),
    etcd3: z.object({ hosts: z.array(z.string()) }),
    postgresql: z.looseObject({ parameters: z.record(z.string(), z.unknown()), pg_hba: z.array(z.string()) }),
  })
  .parse(readYaml('patroni/patroni.yml')[0])

const names = Object.keys(overlay.services)
const nodes = names.filter((name) => name.startsWith('postgres-'))
const members = names.filter((name) => name.startsWith('etcd-'))

test('replaces Postgres by a balancer in front of three nodes with three members of etcd', () => {
  expect([nodes.length, members.length, names.length]).toEqual([3, 3, 7])
  expect(overlay.services['postgres']).toMatchObject({ image: '${HAPROXY_IMAGE:-haproxy:3.2}', environment: {} })
  const named = [...read('patroni/haproxy.cfg').matchAll(/^ +server (\S+) (\S+)$/gm)].map(([, name, at]) => [name, at])
  expect(named).toEqual(nodes.map((name) => [name, `${name}:5432`]))
  expect(settings.etcd3.hosts).toEqual(members.map((name) => `${name}:2379`))
})

test('gives every container the privileges and limits of compose.yaml', () => {
  const own = hardened.parse(readYaml('patroni/compose.yaml')[0])['x-hardened']
  expect(own).toEqual(hardened.parse(readYaml('compose.yaml')[0])['x-hardened'])
  for (const name of [...nodes, ...members])
    expect(overlay.services[name], name).toMatchObject({ read_only: true, cap_drop: own['cap_drop'] })
})

test('only the balancer shares a network with the services, and only the nodes reach etcd', () => {
  expect(overlay.services['postgres']?.networks).toEqual(['data', 'cluster'])
  for (const name of nodes) expect(overlay.services[name]?.networks).toEqual(['cluster', 'etcd'])
  for (const name of members) expect(overlay.services[name]?.networks).toEqual(['etcd'])
  expect(Object.keys(overlay.networks)).toEqual(['cluster', 'etcd'])
})

test.each([...nodes, ...members])('%s has its own name, addresses and volume', (name) => {
  const { environment = {}, volumes = [] } = overlay.services[name] ?? {}
  const own = Object.entries(environment).filter(([key]) => /NAME$|ADDRESS$|ADVERTISE/.test(key) && !/USER/.test(key))
  expect(own).toHaveLength(3)
  for (const [key, value] of own) expect(value, key).toMatch(new RegExp(`^(?:http://)?${name}(?::\\d+)?$`))
  expect(volumes).toContain(`${name}:/var/lib/keyward`)
  expect(overlay.volumes).toHaveProperty(name)
})

test('commits wait for a standby, and Postgres accepts the connections that all processes may open', () => {
  expect(settings.bootstrap.dcs).toMatchObject({ synchronous_mode: true, synchronous_mode_strict: true })
  const capacity = read('../docs/operations/capacity.md').replaceAll(/\s+/g, ' ')
  const [, most = ''] =
    /three validators and two management processes open at most (\d+) connections/.exec(capacity) ?? []
  expect(Number(most)).toBeGreaterThan(0)
  expect(settings.bootstrap.dcs.postgresql.parameters.max_connections).toBeGreaterThan(2 * Number(most))
})

test('Postgres logs no values, and every login needs a password', () => {
  const command = z
    .object({ services: z.object({ postgres: z.object({ command: z.array(z.string()) }) }) })
    .parse(readYaml('compose.yaml')[0]).services.postgres.command
  const logged = command.filter((part) => part.startsWith('log_')).map((part) => part.split('='))
  expect(logged).toHaveLength(3)
  for (const [name = '', value] of logged) expect(String(settings.postgresql.parameters[name]), name).toBe(value)
  for (const line of settings.postgresql.pg_hba) expect(line).toMatch(/ scram-sha-256$/)
})

test('Patroni requires a password for changes, and passwords come only from .env', () => {
  const variables = overlay.services['postgres-1']?.environment ?? {}
  const passwords = Object.entries(variables).filter(([key]) => key.endsWith('_PASSWORD'))
  expect(passwords.map(([key]) => key)).toEqual(
    ['SUPERUSER', 'REPLICATION', 'REWIND', 'RESTAPI'].map((user) => `PATRONI_${user}_PASSWORD`),
  )
  for (const [key, value] of passwords) expect(value, key).toMatch(/^\$\{(?:POSTGRES|REPLICATION)_PASSWORD:\?\}$/)
  expect(read('patroni/patroni.yml')).not.toMatch(/^ *(?:- )?password:/m)
  expect(read('../docs/operations/failover.md')).toContain(
    'echo "REPLICATION_PASSWORD=$(openssl rand -hex 16)" >> .env',
  )
})

test('the image contains only packages of Debian, and its base can be pinned', () => {
  const dockerfile = read('patroni/Dockerfile')
  expect(dockerfile).toMatch(/^ARG DEBIAN_IMAGE=debian:trixie-slim\nFROM \$\{DEBIAN_IMAGE\}$/m)
  expect(dockerfile).toContain(
    'install --yes --no-install-recommends patroni python3-etcd postgresql-17 etcd-server \\\n',
  )
  expect(dockerfile).not.toMatch(/^(?:COPY|ADD) /m)
  expect(dockerfile).toMatch(/^USER postgres$/m)
  expect(read('patroni/compose.yaml')).toContain("DEBIAN_IMAGE: '${DEBIAN_IMAGE:-debian:trixie-slim}'")
})
