import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

import { LAUNCH } from '@keyward/process'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'

import { INFRA, readYaml } from './manifests.ts'

const service = z.looseObject({
  image: z.string(),
  build: z.object({ context: z.literal('..'), dockerfile: z.string() }).optional(),
  read_only: z.boolean().optional(),
  cap_drop: z.array(z.string()).optional(),
  environment: z.record(z.string(), z.string()).default({}),
  volumes: z.array(z.string()).default([]),
})
const compose = z.looseObject({ services: z.record(z.string(), service) }).parse(readYaml('compose.yaml')[0])
const names = Object.keys(compose.services)
const read = (path: string): string => readFileSync(join(INFRA, path), 'utf8')

test('runs two management processes and three validators behind one balancer, with monitoring', () => {
  expect(names.toSorted().join(' ')).toBe(
    'grafana haproxy management-1 management-2 migrate postgres prometheus validator-1 validator-2 validator-3',
  )
})

test.each(names.filter((name) => name !== 'postgres'))('%s has a read-only file system and no privileges', (name) => {
  expect(compose.services[name]).toMatchObject({ read_only: true, cap_drop: ['ALL'] })
})

test('mounts and builds only files that exist', () => {
  const all = Object.values(compose.services)
  const mounted = all.flatMap(({ volumes }) => volumes.map((volume) => volume.split(':', 1)[0] ?? ''))
  const built = all.flatMap(({ build }) => (build ? `../${build.dockerfile}` : []))
  const sources = mounted.concat(built)
  const local = sources.filter((source) => source.startsWith('.') && source !== './tls.pem')
  expect(local.length).toBeGreaterThan(4)
  expect(local.filter((source) => !existsSync(join(INFRA, source)))).toEqual([])
})

test('passes neither master key nor operator token to the validator, and contains no secret', () => {
  expect(Object.keys(compose.services['validator-1']?.environment ?? {})).toEqual([
    'VALIDATOR_DATABASE_URL',
    'VALIDATOR_WORKERS',
    'TRUSTED_PROXIES',
  ])
  const secrets = Object.values(compose.services).flatMap(({ environment }) =>
    Object.entries(environment).filter(([key]) => /TOKEN|KEY|PASSWORD|URL/.test(key)),
  )
  expect(secrets.filter(([, value]) => !value.includes('${'))).toEqual([])
})

test('balancer and Prometheus name every service', () => {
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
    expect(instruction('FROM')).toEqual(['node:22-bookworm-slim'])
    expect(instruction('USER')).toEqual(['node'])
    expect(instruction('COPY')).toEqual(['--from=workspace /keyward /keyward'])
    const program =
      z
        .array(z.string())
        .parse(JSON.parse(instruction('CMD')[0] ?? ''))
        .at(-1) ?? ''
    expect(existsSync(join(INFRA, '..', program)), program).toBe(true)
  })

  test('copies only files that exist', () => {
    const copied = lines.flatMap((line) => (/^COPY (?!--)(.*) \S+$/.exec(line)?.[1] ?? '').split(' ').filter(Boolean))
    expect(copied.length).toBeGreaterThan(3)
    expect(copied.filter((path) => !existsSync(join(INFRA, '..', path)))).toEqual([])
  })
})

test.each(['validator', 'management'])('the image of %s checks its health on the admin port', (name) => {
  expect(read(`docker/${name}.Dockerfile`)).toMatch(/HEALTHCHECK[^]*127\.0\.0\.1:908[01]\/livez[^]*CMD/)
})

test.each(['infra/docker/validator.Dockerfile', 'docs/operations/install.md', 'package.json'])(
  '%s starts a validator with the arguments of LAUNCH',
  (path) => {
    const text = read(join('..', path))
    const { nodeArguments, env } = LAUNCH.validator
    for (const part of [...nodeArguments, ...Object.keys(env), ...Object.values(env)]) expect(text).toContain(part)
  },
)
