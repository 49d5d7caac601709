/** Checks the file for Podman that podman.sed makes from compose.yaml. */

import { execFileSync } from 'node:child_process'

import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'

import { INFRA } from './manifests.ts'

const networkSchema = z.looseObject({
  internal: z.boolean().optional(),
  ipam: z
    .object({
      options: z.record(z.string(), z.string()).optional(),
      config: z.array(z.object({ subnet: z.string(), ip_range: z.string().optional() })),
    })
    .optional(),
})
const memberSchema = z.union([
  z.array(z.string()).transform((names) => Object.fromEntries(names.map((name) => [name, undefined]))),
  z
    .record(z.string(), z.object({ ipv4_address: z.string().optional() }))
    .transform((networks) =>
      Object.fromEntries(Object.entries(networks).map(([name, { ipv4_address: address }]) => [name, address])),
    ),
])
const composeSchema = z.looseObject({
  services: z.record(
    z.string(),
    z.looseObject({ networks: memberSchema, environment: z.record(z.string(), z.string()).optional() }),
  ),
  networks: z.record(z.string(), networkSchema),
})

const text = execFileSync('sed', ['-f', 'podman.sed', 'compose.yaml'], { cwd: INFRA, encoding: 'utf8' })
const { services, networks, ...others } = composeSchema.parse(parse(text, { merge: true }))

test('the file has no name, and every network with subnets has the option that Podman reports', () => {
  expect(Object.keys(others).filter((key) => !key.startsWith('x-'))).toEqual(['volumes'])
  const withSubnets = Object.values(networks).filter(({ ipam }) => ipam !== undefined)
  expect(withSubnets.map(({ ipam }) => ipam?.options)).toEqual(withSubnets.map(() => ({ driver: 'host-local' })))
  expect(withSubnets).toHaveLength(3)
})

test.each(['management-1', 'management-2', 'validator-1', 'validator-2', 'validator-3'])(
  "%s trusts haproxy's fixed address in every network that both join",
  (name) => {
    const balancer = services['haproxy']?.networks ?? {}
    const shared = Object.keys(services[name]?.networks ?? {}).filter((network) => network in balancer)
    expect(shared.toSorted()).toEqual(['edge', 'monitoring'])
    expect(services[name]?.environment?.['KEYWARD_TRUSTED_PROXIES']).toBe(
      shared.map((network) => balancer[network]).join(),
    )
  },
)
