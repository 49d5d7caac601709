// Checks for the licenses of a generated database: known machines whose licenses no rule touches, so every answer is VALID.
import { apiKey, hasAddressRules, licenseFacts, licenseKey, machineId, type Shape } from '../data/population.ts'
import { clientAddress } from '../data/rules.ts'
import { scatter } from '../data/scatter.ts'
import { prepareChecks, type Check, type Target } from '../load/checks.ts'
import { parseMix } from '../load/mix.ts'

export interface CheckChoice {
  count: number
  /** Only licenses of organizations that have, or lack, rules about addresses; all when left out. */
  addressRules?: boolean
  /** Sends an address of a client among the rules' networks as `x-forwarded-for`. */
  forwarded?: boolean
}

// Enough for the licenses that are checked to lie all over the index, few enough for the generator to hold their requests.
export const CHECK_COUNT = 200_000

/** Checks of licenses picked all over the database, the same ones for the same shape. */
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
    targets.push({ apiKey: keys[organization] ?? '', licenseKey: licenseKey(shape, license), machineIds: [machine] })
  }
  const forwardedFor = Array.from({ length: 4096 }, (_, n) => clientAddress(shape.seed, n))
  return prepareChecks({
    targets,
    mix: parseMix('known=1'),
    length: Math.max(targets.length, 1000),
    ...(choice.forwarded === true ? { forwardedFor } : {}),
  })
}

/** A quick run is content with 100 k licenses and 10 k rules. */
export function shapeFor(bench: { quick: boolean }, licenses: number, rules: number): Shape {
  return bench.quick ? shapeOf(Math.min(licenses, 100_000), Math.min(rules, 10_000)) : shapeOf(licenses, rules)
}

export function shapeOf(licenses: number, rules: number): Shape {
  return { seed: 1, licenses, rules, organizations: 10, machinesPerLicense: 3, maxMachines: 5 }
}
