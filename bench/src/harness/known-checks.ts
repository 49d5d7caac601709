/**
 * Creates checks of known machines for the licenses of a generated database. No rule matches them, so every response is
 * VALID.
 */

import { apiKey, hasAddressRules, licenseFacts, licenseKey, machineId, type Shape } from '../data/population.ts'
import { clientAddress } from '../data/rules.ts'
import { scatter } from '../data/scatter.ts'
import { prepareChecks, type Check, type Target } from '../load/checks.ts'
import { parseMix } from '../load/mix.ts'

interface CheckChoice {
  count: number
  /** Selects licenses of organizations with (true) or without (false) address rules. Selects all licenses when absent. */
  addressRules?: boolean
  /** Whether to send a client address near the rules' networks as `x-forwarded-for`. */
  forwarded?: boolean
}

/**
 * The number of checks in most scenarios. The checks are spread over the whole index, and their requests fit into the generator's memory.
 */
export const CHECK_COUNT = 200_000

/** Returns checks of licenses spread over the whole database. Equal shapes and choices have equal checks. */
export function knownChecks(shape: Shape, choice: CheckChoice): Check[] {
  const targets: Target[] = []
  const keys = Array.from({ length: shape.organizations }, (_, organization) => apiKey(shape, organization))
  const wanted = Math.min(choice.count, shape.licenses)
  for (let draw = 0; targets.length < wanted && draw < wanted * 20; draw += 1) {
    const license = scatter(shape.seed, 99, draw) % shape.licenses
    const { organization, blocked } = licenseFacts(shape, license)
    if (blocked || (choice.addressRules !== undefined && hasAddressRules(organization) !== choice.addressRules))
      continue
    const machine = machineId(shape, license, draw % shape.machinesPerLicense)
    targets.push({ apiKey: keys[organization]!, licenseKey: licenseKey(shape, license), machineIds: [machine] })
  }
  const forwardedFor = Array.from({ length: 4096 }, (_, n) => clientAddress(shape.seed, n))
  return prepareChecks({
    targets,
    mix: parseMix('known=1'),
    length: Math.max(targets.length, 1000),
    ...(choice.forwarded === true ? { forwardedFor } : {}),
  })
}

/** Returns the shape of a scenario; a quick run has at most 100 k licenses and 10 k rules. */
export function shapeFor(bench: { quick: boolean }, licenses: number, rules: number): Shape {
  return bench.quick ? shapeOf(Math.min(licenses, 100_000), Math.min(rules, 10_000)) : shapeOf(licenses, rules)
}

export function shapeOf(licenses: number, rules: number): Shape {
  return { seed: 1, licenses, rules, organizations: 10, machinesPerLicense: 3, maxMachines: 5 }
}
