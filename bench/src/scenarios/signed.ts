/** Measures checks with signed responses against the same checks without a signature, on one server. */

import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import { createSigningKey, delegate } from '@keyward/testkit'

import { apiKey } from '../data/population.ts'
import { judge } from '../harness/goals.ts'
import { knownChecks, shapeOf } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, compare } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { startKeyward } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'
import { preflight } from '../load/preflight.ts'

const PLAIN = 'without a signature'
const SIGNED = 'signed'

export const signed: Scenario = {
  name: 'signed',
  summary: 'known machines with and without signed responses, 100 k licenses',
  run: async (bench) => {
    const shape = shapeOf(100_000, 1_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const server = await startKeyward(databaseUrl, bench.plan)
    try {
      const kids = await delegateAll(databaseUrl)
      const checks = knownChecks(shape, { count: 50_000, addressRules: false })
      const organizations = new Map(kids.map((kid, organization) => [apiKey(shape, organization), kid]))
      const signedChecks = checks.map((check) => ({ ...check, kid: organizations.get(check.apiKey)! }))
      // The delegations reach the validator through its change feed.
      while ((await preflight(server.url, signedChecks.slice(0, 50), 'v2')).length > 0) await sleep(50)
      const rounds = await alternate(
        [
          { name: PLAIN, server, checks },
          { name: SIGNED, server, checks: signedChecks },
        ],
        bench,
      )
      return {
        goals: [judge('signed', compare(rounds, 'perSecond', SIGNED, PLAIN))],
        figures: {
          processorTime: summarize(compare(rounds, 'cpuUs', PLAIN, SIGNED)),
          rounds: Object.fromEntries(rounds),
        },
      }
    } finally {
      await server.stop()
    }
  },
}

/** Replaces the signing keys of all organizations by keys that delegate to the validator. Returns their ids in the order of the organizations. */
async function delegateAll(databaseUrl: string): Promise<string[]> {
  const pool = createPool(databaseUrl, { name: 'signed', max: 1 })
  try {
    await pool.query('delete from signing_keys')
    const { rows } = await pool.query<{ id: string }>('select id from organizations order by length(name), name')
    const kids: string[] = []
    for (const { id } of rows) {
      const key = await createSigningKey(pool, id)
      await delegate(pool, key)
      kids.push(key.keyId)
    }
    return kids
  } finally {
    await pool.end()
  }
}
