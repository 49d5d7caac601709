/**
 * Starts an installation with compose, from the images to a tested verdict through TLS, with an app and a vendor that use it. The tests that
 * run on an installation share this start.
 */

import { freePort } from '../../faults/support/children.ts'
import { figure } from '../../faults/support/length.ts'
import { provideBaseImages } from './base-images.ts'
import { Callers, type Vendor } from './callers.ts'
import { missingEngine } from './docker.ts'
import { Installation } from './installation.ts'

/** The services of compose.yaml that are built from this project and keep running. */
export const SERVICES = ['validator-1', 'validator-2', 'validator-3', 'management-1', 'management-2']

export interface TopologyOptions {
  /** Variables of the compose files, in addition to the images. */
  readonly variables: Readonly<Record<string, string>>
  /** Whether a Patroni cluster replaces the single Postgres. Default false. */
  readonly hasCluster?: boolean
  /** The machine limit of the vendor's license. By default the license is for any number of machines. */
  readonly maxMachines?: number
}

/** Returns whether the tests that `what` names must be skipped, and prints the reason. */
export function isSkipped(what: string): boolean {
  const missing = missingEngine()
  if (missing !== null) process.stdout.write(`The tests of ${what} are skipped: ${missing}.\n`)
  return missing !== null
}

export interface Topology {
  readonly installation: Installation
  readonly app: Callers
  readonly vendor: Vendor
  /** The output of the smoke test. */
  readonly smokeTest: string
  /** Closes the connections, and removes the containers, volumes, networks and files. */
  readonly remove: () => void
}

/** Builds the images and starts the installation. Resolves after its smoke test. Leaves nothing behind if it rejects. */
export async function startTopology(options: TopologyOptions): Promise<Topology> {
  const { variables, hasCluster = false, maxMachines = null } = options
  const images = provideBaseImages()
  const installation = new Installation({
    port: await freePort(),
    variables: { VALIDATOR_MEMORY: '512m', ...variables, ...images },
    hasCluster,
  })
  const app = new Callers(installation)
  const remove = (): void => {
    app.close()
    installation.remove()
  }
  try {
    const buildMs = performance.now()
    installation.compose(['build'])
    const startMs = performance.now()
    installation.compose(['up', '--detach', 'haproxy'])
    await app.untilReady()
    const smokeTest = installation.smokeTest()
    figure(hasCluster ? 'Start of compose with Patroni' : 'Start of compose', {
      secondsToBuild: secondsBetween(buildMs, startMs),
      secondsToValid: secondsBetween(startMs, performance.now()),
    })
    return { installation, app, smokeTest, vendor: await app.createVendor(maxMachines), remove }
  } catch (error) {
    const logs = installation.compose(['logs', '--tail', '5'], true).output
    remove()
    throw new Error(`The installation did not start. The last lines of its logs:\n${logs}`, { cause: error })
  }
}

function secondsBetween(fromMs: number, toMs: number): number {
  return Math.round((toMs - fromMs) / 100) / 10
}
