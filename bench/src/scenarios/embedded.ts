/** Measures checks that a Node program decides itself (docs/api.md#h15). */

import { openEmbedded } from '@keyward/validator/embedded'

import { apiKey, licenseFacts, licenseKey, machineId } from '../data/population.ts'
import { scatter } from '../data/scatter.ts'
import { asGenerator } from '../harness/cores.ts'
import { judge } from '../harness/goals.ts'
import { CHECK_COUNT, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import type { Scenario } from '../harness/scenario.ts'

/** An even number, so the organization has no rules for addresses. */
const ORGANIZATION = 2
const WITH_ADDRESS = 'with an address and a country'

export const embedded: Scenario = {
  name: 'embedded',
  summary: 'known machines in the process of a Node program, 1 M licenses and 100 k rules',
  run: async (bench) => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const variables = { DATABASE_URL: databaseUrl, VALIDATOR_ADMIN_PORT: '0', LOG_LEVEL: 'warn' }
    const validator = await openEmbedded({ apiKey: apiKey(shape, ORGANIZATION), variables })
    try {
      await validator.loaded
      const checks = Array.from(
        { length: CHECK_COUNT * 10 },
        (_, draw) => scatter(shape.seed, 99, draw) % shape.licenses,
      )
        .filter((license) => {
          const { organization, blocked } = licenseFacts(shape, license)
          return organization === ORGANIZATION && !blocked
        })
        .map((license) => ({ licenseKey: licenseKey(shape, license), machineId: machineId(shape, license, 0) }))
      const located = checks.map((check) => ({ ...check, ip: '198.51.100.7', country: 'DE' }))
      const measure = (given: typeof checks): number => {
        const startedMs = performance.now()
        let count = 0
        for (; performance.now() - startedMs < bench.roundMs; count += 1_000)
          for (let i = 0; i < 1_000; i++) {
            const verdict = validator.check(given[(count + i) % given.length]!)
            if (!('valid' in verdict) || !verdict.valid)
              throw new Error(`unexpected verdict: ${JSON.stringify(verdict)}`)
          }
        return ((performance.now() - startedMs) * 1_000) / count
      }
      const microseconds = { plain: [] as number[], located: [] as number[] }
      for (let round = -1; round < bench.rounds; round++) {
        bench.signal.throwIfAborted()
        const [plain, withAddress] = await asGenerator(bench.plan, () =>
          Promise.resolve([measure(checks), measure(located)] as const),
        )
        // The usage of the round is written in between.
        await new Promise((resolve) => setTimeout(resolve, 100))
        if (round < 0) continue // warm-up
        microseconds.plain.push(plain)
        microseconds.located.push(withAddress)
      }
      return {
        goals: [judge('embedded', microseconds.plain)],
        figures: { known: microseconds.plain, [WITH_ADDRESS]: microseconds.located },
      }
    } finally {
      await validator.close()
    }
  },
}
