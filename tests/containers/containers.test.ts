/**
 * Builds the three images, starts the topology of compose.yaml without Prometheus and Grafana, and sends checks through TLS.
 * The tests are skipped without a container engine.
 */

import { execFileSync } from 'node:child_process'

import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'

import { freePort } from '../faults/support/children.ts'
import { provideBaseImages } from './support/base-images.ts'
import { Callers, hasNetworks, OtherNetwork, type Vendor } from './support/callers.ts'
import { missingEngine } from './support/docker.ts'
import { privilegesOf, UNPRIVILEGED } from './support/inside.ts'
import { Installation, PLANTED } from './support/installation.ts'

const IMAGES = ['keyward-validator', 'keyward-management', 'keyward-migrate']
const SERVICES = ['validator-1', 'validator-2', 'validator-3', 'management-1', 'management-2']
const missing = missingEngine()
if (missing !== null) process.stdout.write(`The tests of containers are skipped: ${missing}.\n`)

describe.skipIf(missing !== null)('the containers of compose.yaml', () => {
  let installation: Installation
  let app: Callers
  let vendor: Vendor
  let smokeTest: string

  /** Functions that remove the installation and close the connections, in the order of creation. */
  const removals: (() => void)[] = []
  afterAll(() => removals.toReversed().forEach((remove) => remove()))

  beforeAll(async () => {
    const variables = provideBaseImages()
    installation = new Installation({ port: await freePort(), variables: { VALIDATOR_MEMORY: '512m', ...variables } })
    removals.push(() => installation.remove())
    const seconds = (fromMs: number): string => ((performance.now() - fromMs) / 1_000).toFixed(1)
    const buildMs = performance.now()
    installation.compose(['build'])
    const startMs = performance.now()
    process.stdout.write(`The images were built in ${seconds(buildMs)} s.\n`)
    installation.compose(['up', '--detach', 'haproxy'])
    smokeTest = installation.smokeTest()
    process.stdout.write(`The installation was started and tested in ${seconds(startMs)} s.\n${smokeTest}`)
    app = new Callers(installation)
    removals.push(() => app.close())
    vendor = await app.createVendor()
  })
  test('returns a verdict through TLS', () => {
    expect(smokeTest).toContain('The first check is VALID')
    expect(smokeTest).toContain('The installation works.')
    expect(installation.inspect('migrate').State).toMatchObject({ Status: 'exited', ExitCode: 0 })
  })

  test.each([...SERVICES, 'haproxy', 'postgres'])('%s is healthy', async (name) => {
    await expect.poll(() => installation.inspect(name).State.Health?.Status).toBe('healthy')
  })

  test.each([...SERVICES, 'haproxy', 'postgres'])('%s runs without privileges on a read-only file system', (name) => {
    expect(privilegesOf(installation, name)).toEqual(UNPRIVILEGED)
  })

  test('the validator runs on Node 24 and the current release of uWebSockets.js', () => {
    const logs = installation.compose(['logs', '--no-log-prefix', 'validator-1']).output
    expect(logs).toContain('"release":"uWebSockets.js 20.69.0","notLoaded":[]')
    expect(installation.shell('validator-1', 'node --version')).toMatch(/^v24\./)
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
        const found = network?.addressOf(family, installation, vendor.managementToken)
        expect(found?.seen).toBe(found?.own)
      },
    )
  })

  test('keeps every container within its memory limit under load', async () => {
    const load = new Promise((resolve) => setTimeout(resolve, 10_000))
    const codes = await app.checkDuring(vendor, load)
    expect(Object.keys(codes)).toEqual(['VALID'])
    for (const name of SERVICES) {
      const { State, RestartCount } = installation.inspect(name)
      expect({ oomKilled: State.OOMKilled, restarts: RestartCount }, name).toEqual({ oomKilled: false, restarts: 0 })
    }
  })
})
