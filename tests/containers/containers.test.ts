/**
 * Builds the three images, starts the topology of compose.yaml without Prometheus and Grafana, and sends checks through TLS.
 * The tests are skipped without a container engine.
 */

import { execFileSync } from 'node:child_process'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { hasNetworks, OtherNetwork } from './support/callers.ts'
import { privilegesOf, UNPRIVILEGED } from './support/inside.ts'
import { PLANTED } from './support/installation.ts'
import { isSkipped, SERVICES, startTopology, type Topology } from './support/topology.ts'

const IMAGES = ['keyward-validator', 'keyward-management', 'keyward-migrate']

describe.skipIf(isSkipped('containers'))('the containers of compose.yaml', () => {
  let topology: Topology
  beforeAll(async () => {
    topology = await startTopology({ variables: {} })
    return () => topology.remove()
  })

  test('returns a verdict through TLS', () => {
    expect(topology.smokeTest).toContain('The first check is VALID')
    expect(topology.smokeTest).toContain('The installation works.')
    expect(topology.installation.inspect('migrate').State).toMatchObject({ Status: 'exited', ExitCode: 0 })
  })

  test.each([...SERVICES, 'haproxy', 'postgres'])('%s is healthy', async (name) => {
    await expect.poll(() => topology.installation.inspect(name).State.Health?.Status).toBe('healthy')
  })

  test.each([...SERVICES, 'haproxy', 'postgres'])('%s runs without privileges on a read-only file system', (name) => {
    expect(privilegesOf(topology.installation, name)).toEqual(UNPRIVILEGED)
  })

  test('the validator runs on Node 24 and the current release of uWebSockets.js', () => {
    const logs = topology.installation.compose(['logs', '--no-log-prefix', 'validator-1']).output
    expect(logs).toContain('"release":"uWebSockets.js 20.69.0","notLoaded":[]')
    expect(topology.installation.shell('validator-1', 'node --version')).toMatch(/^v24\./)
  })

  test.each(IMAGES)('%s contains no secret from the source folder', (image) => {
    const count = execFileSync('sh', ['-c', `docker save ${image} | grep --text --count '${PLANTED}' || true`])
    expect(count.toString().trim()).toBe('0')
    const sources = execFileSync('sh', ['-c', `docker save ${image} | grep --text --count 'pnpm-lock.yaml'`])
    expect(Number(sources)).toBeGreaterThan(0)
  })

  describe('for a caller in another network', () => {
    let network: OtherNetwork | null = null
    beforeEach(({ skip }) => {
      skip(!hasNetworks(), 'only root may create networks')
      network ??= new OtherNetwork()
    })
    afterAll(() => network?.close())

    test.each(['IPv4', 'IPv6'] as const)(
      'passes the %s address of the caller to management unchanged',
      async (family) => {
        const found = network?.addressOf(family, topology.installation, topology.vendor.managementToken)
        expect(found?.seen).toBe(found?.own)
      },
    )
  })

  test('keeps every container within its memory limit under load', async () => {
    const stateOf = (name: string): object => {
      const { State, RestartCount } = topology.installation.inspect(name)
      return { name, startedAt: State.StartedAt, restarts: RestartCount, oomKilled: State.OOMKilled }
    }
    const before = SERVICES.map(stateOf)
    const load = new Promise((resolve) => setTimeout(resolve, 10_000))
    const codes = await topology.app.checkDuring(topology.vendor, load)
    expect(Object.keys(codes)).toEqual(['VALID'])
    const after = SERVICES.map(stateOf)
    expect(after).toEqual(before)
    expect(after).toEqual(SERVICES.map(() => expect.objectContaining({ oomKilled: false })))
  })
})
