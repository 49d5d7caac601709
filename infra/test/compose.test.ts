import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { LAUNCH } from '@keyward/runtime'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { INFRA, readYaml } from './manifests.ts'

const service = z.looseObject({
  image: z.string(),
  build: z
    .object({ context: z.literal('..'), dockerfile: z.string(), args: z.object({ NODE_IMAGE: z.string() }) })
    .optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).optional(),
  pids_limit: z.int(),
  logging: z.object({ options: z.record(z.string(), z.string()) }),
  mem_limit: z.string(),
  networks: z.union([
    z.array(z.string()),
    z
      .record(z.string(), z.object({ ipv4_address: z.string().optional() }))
      .transform((networks) => Object.keys(networks)),
  ]),
  command: z.array(z.string()).default([]),
  healthcheck: z.object({ test: z.array(z.string()) }).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
})
const network = z.object({
  internal: z.boolean().default(false),
  enable_ipv6: z.boolean().optional(),
  ipam: z.object({ config: z.array(z.object({ subnet: z.string(), ip_range: z.string().optional() })) }).optional(),
})
const compose = z
  .looseObject({ services: z.record(z.string(), service), networks: z.record(z.string(), network) })
  .parse(readYaml('compose.yaml')[0])
const names = Object.keys(compose.services)
const read = (path: string): string => readFileSync(join(INFRA, path), 'utf8')

test('compose.yaml runs two management processes and three validators behind one balancer, with monitoring', () => {
  expect(names.toSorted().join(' ')).toBe(
    'grafana haproxy management-1 management-2 migrate postgres prometheus validator-1 validator-2 validator-3',
  )
})

test.each(names)('%s has a read-only file system and limits, but no privileges', (name) => {
  expect(compose.services[name]).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
  expect(compose.services[name]?.mem_limit).toMatch(/^(?:\d+[mg]|\$\{\w+:-\d+g\})$/)
})

const membersOf = (wanted: string): string[] =>
  names.filter((name) => compose.services[name]?.networks.includes(wanted)).map((name) => name.replace(/-\d$/, ''))
const SERVICES = ['validator', 'management']

test('every service is on exactly the networks that it needs', () => {
  expect(new Set(membersOf('data'))).toEqual(new Set([...SERVICES, 'postgres', 'migrate']))
  expect(new Set(membersOf('edge'))).toEqual(new Set([...SERVICES, 'haproxy']))
  expect(new Set(membersOf('monitoring'))).toEqual(new Set([...SERVICES, 'haproxy', 'prometheus', 'grafana']))
  const open = Object.keys(compose.networks).filter((name) => compose.networks[name]?.internal === false)
  expect(open.map((name) => [name, membersOf(name)])).toEqual([
    ['public', ['haproxy']],
    ['operators', ['grafana']],
    ['egress', ['management', 'management']],
  ])
})

test('the services trust only the address of the balancer and receive the settings of the edge', () => {
  const { networks } = z
    .object({ networks: z.object({ edge: z.object({ ipv4_address: z.string() }) }) })
    .parse(
      z.object({ services: z.record(z.string(), z.unknown()) }).parse(readYaml('compose.yaml')[0]).services['haproxy'],
    )
  for (const name of ['validator-1', 'management-1']) {
    const environment = compose.services[name]?.environment ?? {}
    expect(environment['KEYWARD_TRUSTED_PROXIES']).toBe(networks.edge.ipv4_address)
    for (const variable of ['KEYWARD_EDGE', 'KEYWARD_CLIENT_IP_HEADER', 'KEYWARD_COUNTRY_HEADER'])
      expect(environment[variable]).toBe(`\${${variable}:-}`)
  }
  const [range] = compose.networks['edge']?.ipam?.config ?? []
  expect(range).toEqual({ subnet: '172.30.0.0/24', ip_range: '172.30.0.128/25' })
  expect(Number(networks.edge.ipv4_address.split('.')[3])).toBeLessThan(128)
})

test('each validator has a login of its own, and only the migration logs in as administrator and owner', () => {
  const userOf = (name: string, variable: string): string =>
    new URL((compose.services[name]?.environment[variable] ?? '').replaceAll(/\$\{\w+:\?\}/g, 'x')).username
  expect(userOf('management-1', 'KEYWARD_DATABASE_URL')).toBe(
    compose.services['migrate']?.environment['KEYWARD_MANAGEMENT_LOGIN'],
  )
  const validators = names.filter((name) => name.startsWith('validator-'))
  expect(validators.map((name) => userOf(name, 'KEYWARD_VALIDATOR_DATABASE_URL')).join(',')).toBe(
    compose.services['migrate']?.environment['KEYWARD_VALIDATOR_LOGIN'],
  )
  const passwords = validators.map((name) =>
    /\$\{\w+:\?\}/.exec(compose.services[name]?.environment['KEYWARD_VALIDATOR_DATABASE_URL'] ?? '')?.at(0),
  )
  expect(passwords.join(',')).toBe(compose.services['migrate']?.environment['KEYWARD_VALIDATOR_PASSWORD'])
  expect(new Set(passwords).size).toBe(validators.length)
  expect(userOf('migrate', 'KEYWARD_DATABASE_URL')).toBe('keyward')
  const administered = names.filter((name) => JSON.stringify(compose.services[name]).includes('POSTGRES_PASSWORD'))
  expect(administered).toEqual(['postgres', 'migrate'])
})

test('Postgres logs no values and is healthy only when it accepts connections over TCP', () => {
  const { command, healthcheck } = compose.services['postgres'] ?? {}
  for (const setting of ['error_verbosity=terse', 'min_error_statement=panic', 'parameter_max_length_on_error=0'])
    expect(command).toContain(`log_${setting}`)
  expect(healthcheck?.test.join(' ')).toContain('-h 127.0.0.1')
})

test('the balancer receives the real addresses of callers over IPv6', () => {
  expect(compose.networks['public']).toMatchObject({ enable_ipv6: true })
  const subnets = compose.networks['public']?.ipam?.config.map(({ subnet }) => subnet) ?? []
  expect(subnets.filter((subnet) => subnet.startsWith('fd'))).toHaveLength(1)
  expect(compose.services['haproxy']?.environment['LISTEN_IPV6']).toBe('true')
  expect(read('haproxy/haproxy.cfg')).toMatch(/\.if defined\(LISTEN_IPV6\)\n {4}bind :::443 v6only ssl /)
})

test('the balancer reloads renewed certificates, and the logs and the stored metrics are bounded', () => {
  expect(compose.services['haproxy']).toMatchObject({ command: ['sh', 'run.sh', 'haproxy.cfg', '/etc/keyward'] })
  expect(compose.services['haproxy']?.volumes).toContain('./tls:/etc/keyward:ro')
  for (const name of names) expect(compose.services[name]?.logging.options, name).toHaveProperty('max-size')
  expect(compose.services['prometheus']?.command.join(' ')).toContain('--storage.tsdb.retention.size=')
})

test('Grafana has no default password, and every image can be pinned', () => {
  expect(compose.services['grafana']?.environment['GF_SECURITY_ADMIN_PASSWORD']).toBe('${GRAFANA_PASSWORD:?}')
  for (const name of names) {
    const { image, build } = compose.services[name] ?? {}
    expect(build?.args.NODE_IMAGE ?? image, name).toMatch(/^\$\{\w+_IMAGE:-[\w./-]+:[\w.-]+\}$/)
  }
})

test('the documented .env contains every variable that compose.yaml requires', () => {
  const required = new Set([...read('compose.yaml').matchAll(/\$\{(\w+):\?\}/g)].map(([, name]) => name))
  const documented = read('../docs/operations/install.md')
  const [, users = ''] = /for user in ([A-Z0-9_ ]+); do echo "\$\{user\}_PASSWORD/.exec(documented) ?? []
  const created = users.split(' ').map((user) => `${user}_PASSWORD`)
  for (const [, name = ''] of documented.matchAll(/echo "([A-Z_]+)=\$\(openssl/g)) created.push(name)
  expect(new Set(created)).toEqual(required)
})

test('the documented command renames exactly the old names in .env that compose.yaml reads by new names', () => {
  const all = new Set([...read('compose.yaml').matchAll(/\$\{(\w+)/g)].map(([, name = '']) => name))
  const variables = [...all].filter((name) => !all.has(`KEYWARD_${name}`))
  const earlier = variables.map((name) => `${name.replace(/^KEYWARD_/, '')}=1\n`).join('')
  const [, script = ''] = /^sed -i -E '(.*)' \.env$/m.exec(read('../docs/operations/upgrade.md')) ?? []
  const run = (input: string): string => execFileSync('sed', ['-E', script], { input, encoding: 'utf8' })
  expect(run(earlier)).toBe(variables.map((name) => `${name}=1\n`).join(''))
  expect(run(run(earlier))).toBe(run(earlier))
})

test('compose.yaml passes every optional setting of earlier versions by its old name too', () => {
  for (const name of ['validator-1', 'management-1']) {
    const passed = Object.entries(compose.services[name]?.environment ?? {})
    const optional = passed.filter(([variable, value]) => value === `\${${variable}:-}`).map(([variable]) => variable)
    const [renamed, old] = [true, false].map((isNew) =>
      optional.filter((each) => each.startsWith('KEYWARD_') === isNew),
    )
    const added = 'KEYWARD_MAIL_PORTAL_URL'
    expect(old?.length).toBeGreaterThan(8)
    expect(old?.map((each) => `KEYWARD_${each}`)).toEqual(renamed?.filter((each) => each !== added))
  }
})

test('compose.yaml mounts and builds only files that exist', () => {
  const all = Object.values(compose.services)
  const mounted = all.flatMap(({ volumes }) => volumes.map((volume) => volume.split(':', 1)[0] ?? ''))
  const built = all.flatMap(({ build }) => (build ? `../${build.dockerfile}` : []))
  const sources = mounted.concat(built)
  const local = sources.filter((source) => source.startsWith('.') && source !== './tls')
  expect(local.length).toBeGreaterThan(4)
  expect(local.filter((source) => !existsSync(join(INFRA, source)))).toEqual([])
})

test('compose.yaml contains no secrets, and passes no secrets of management to the validator', () => {
  expect(Object.keys(compose.services['validator-1']?.environment ?? {})).toEqual([
    'KEYWARD_TRUSTED_PROXIES',
    'KEYWARD_EDGE',
    'KEYWARD_CLIENT_IP_HEADER',
    'KEYWARD_COUNTRY_HEADER',
    'KEYWARD_CORS_ORIGINS',
    'KEYWARD_LOG_LEVEL',
    'EDGE',
    'CLIENT_IP_HEADER',
    'COUNTRY_HEADER',
    'CORS_ORIGINS',
    'LOG_LEVEL',
    'KEYWARD_VALIDATOR_WORKERS',
    'KEYWARD_STALE_AFTER',
    'KEYWARD_STALE_LIMIT',
    'KEYWARD_INDEX_FILE',
    'KEYWARD_INDEX_FILE_INTERVAL',
    'STALE_AFTER',
    'STALE_LIMIT',
    'INDEX_FILE',
    'INDEX_FILE_INTERVAL',
    'KEYWARD_VALIDATOR_DATABASE_URL',
  ])
  const secrets = Object.values(compose.services).flatMap(({ environment }) =>
    Object.entries(environment).filter(([key]) => /TOKEN|_KEY|PASSWORD|DATABASE_URL/.test(key)),
  )
  expect(secrets.filter(([, value]) => !value.includes('${'))).toEqual([])
})

test('the configurations of haproxy and Prometheus contain every service', () => {
  const services = names.filter((name) => /^(?:validator|management)-/.test(name))
  for (const name of services) {
    expect(read('haproxy/haproxy.cfg'), name).toContain(`server ${name} ${name}:`)
    expect(read('nginx/nginx.conf'), name).toContain(`server ${name}:`)
    expect(read('prometheus/prometheus.yml'), name).toContain(`${name}:9`)
  }
})

describe.each(readdirSync(join(INFRA, 'docker')))('%s', (file) => {
  const lines = read(`docker/${file}`).split('\n')
  const last = lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')))
  const instruction = (name: string): string[] =>
    last.flatMap((line) => (line.startsWith(`${name} `) ? [line.slice(name.length + 1)] : []))

  test('builds a slim image that runs a program of the project as an unprivileged user', () => {
    // The validator needs another release of Node on arm64 than on x64, because of uWebSockets.js.
    const hasValidator = /^(?:validator|keyward)/.test(file)
    expect(instruction('FROM')).toEqual([hasValidator ? '${NODE_STAGE}' : '${NODE_IMAGE}'])
    expect(lines).toContain('ARG NODE_IMAGE=node:24-trixie-slim')
    expect(instruction('USER')).toEqual(['node'])
    // The console is built in a separate stage, because the build needs development packages.
    const built = '--from=console /keyward/packages/console/dist /keyward/packages/console/dist'
    const hasConsole = /^(?:management|keyward)/.test(file)
    expect(instruction('COPY')).toEqual(['--from=workspace /keyward /keyward', ...(hasConsole ? [built] : [])])
    const program =
      z
        .array(z.string())
        .parse(JSON.parse(instruction('CMD')[0] ?? ''))
        .at(-1)
        ?.replace(/^\/keyward\//, '') ?? ''
    expect(existsSync(join(INFRA, '..', program)), program).toBe(true)
  })

  test('the Dockerfile copies only files that exist', () => {
    const copied = lines.flatMap((line) => (/^COPY (?!--)(.*) \S+$/.exec(line)?.[1] ?? '').split(' ').filter(Boolean))
    expect(copied.length).toBeGreaterThan(3)
    expect(copied.filter((path) => !existsSync(join(INFRA, '..', path)))).toEqual([])
  })
})

test('bake.json builds every image', () => {
  const target = z.looseObject({ dockerfile: z.string().optional() })
  const { target: targets } = z
    .object({ target: z.record(z.string(), target) })
    .parse(JSON.parse(readFileSync(join(INFRA, 'bake.json'), 'utf8')))
  const built = Object.values(targets).flatMap(({ dockerfile }) => dockerfile ?? [])
  expect(built.toSorted()).toEqual(readdirSync(join(INFRA, 'docker')).map((name) => `infra/docker/${name}`))
})

test('the image of the validator has a release of Node for each processor architecture', () => {
  const lines = read('docker/validator.Dockerfile').split('\n')
  expect(lines).toContain('ARG NODE_STAGE=node-${TARGETARCH}')
  expect(lines).toContain('FROM ${NODE_IMAGE} AS node-amd64')
  expect(lines).toContain('FROM ${NODE_IMAGE_ARM64} AS node-arm64')
  // A declaration of TARGETARCH would hide the value that the builder provides.
  expect(lines).not.toContain('ARG TARGETARCH')
})

test.each(['validator', 'management'])('the image of %s checks its health on the admin port', (name) => {
  expect(read(`docker/${name}.Dockerfile`)).toMatch(/HEALTHCHECK[^]*127\.0\.0\.1:908[01]\/livez[^]*CMD/)
})

test.each(['infra/docker/management.Dockerfile', 'package.json'])(
  '%s starts management with the arguments of LAUNCH',
  (path) => {
    expect(LAUNCH.management.nodeArguments).toEqual(['--disable-sigusr1'])
    expect(read(join('..', path))).toMatch(/--disable-sigusr1[", ]+services\/management\/src\/main\.ts/)
  },
)

test.each(['infra/docker/validator.Dockerfile', 'infra/systemd/keyward-validator.service', 'package.json'])(
  '%s starts a validator with the arguments of LAUNCH',
  (path) => {
    const text = read(join('..', path))
    const { nodeArguments, env } = LAUNCH.validator
    for (const part of [...nodeArguments, ...Object.keys(env), ...Object.values(env)]) expect(text).toContain(part)
  },
)

/** Variables that compose.yaml does not read from `.env`, because it sets a constant value or the default is correct. */
const FIXED =
  /^(?:(?:VALIDATOR|MANAGEMENT)_(?:HOST|PORT|ADMIN_HOST|ADMIN_PORT)|VALIDATOR_(?:ADMIN_URLS?|SOCKET)|DATABASE_URL)$/

test.each(SERVICES)('compose.yaml passes every variable to the %s', (name) => {
  const config = readFileSync(join(INFRA, `../services/${name}/src/config.ts`), 'utf8')
  const taken = [...config.matchAll(/^ {2}([A-Z][A-Z_]{2,}): /gm)].map(([, variable]) => variable ?? '')
  expect(taken.length).toBeGreaterThan(10)
  const passed = compose.services[`${name}-1`]?.environment ?? {}
  expect(taken.filter((variable) => !FIXED.test(variable) && !Object.hasOwn(passed, `KEYWARD_${variable}`))).toEqual([])
})
