/**
 * Measures checks with a signed response (docs/api.md#g1) against the same checks without a signature. The responses of one turn of the event
 * loop share a signature, so the cost depends on the number of connections that send at the same time.
 */

import { setTimeout as sleep } from 'node:timers/promises'

import { createPool } from '@keyward/database'
import { insertLicense, insertMachine } from '@keyward/testkit'
import { z } from 'zod'

import { judge } from '../harness/goals.ts'
import { shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, compare, type Contender } from '../harness/rounds.ts'
import type { Scenario } from '../harness/scenario.ts'
import { createTenant, type Server, startKeyward, startManagement } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'
import type { Check } from '../load/checks.ts'

const CONNECTIONS = [1, 8, 64] as const
const DELEGATED_WITHIN_MS = 60_000
const MACHINE = 'bench'

const publicKey = z.object({ keyId: z.string() })

/** Returns the id of the current signing key, when the validator signs under this key. */
async function untilSigned({ url }: Server, apiKey: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}` }
  for (const start = performance.now(); performance.now() - start < DELEGATED_WITHIN_MS; await sleep(100)) {
    const { data } = publicKey.safeParse(await (await fetch(new URL('/api/v1/public-key', url), { headers })).json())
    if (data === undefined) continue
    const body = JSON.stringify({ license: 'none', nonce: 'A'.repeat(22), kid: data.keyId })
    const response = await fetch(new URL('/api/v2/license/validate', url), { method: 'POST', headers, body })
    if (response.headers.has('keyward-signature')) return data.keyId
  }
  throw new Error(`the validator had no delegation within ${DELEGATED_WITHIN_MS} ms`)
}

export const signed: Scenario = {
  name: 'signed',
  summary: 'signed responses on 1, 8 and 64 connections, against the same checks without a signature',
  run: async (bench) => {
    const databaseUrl = await openShape(bench.postgres, shapeFor(bench, 1_000, 10), bench.log)
    const pool = createPool(databaseUrl, { name: 'signed', max: 1 })
    const keyward = await startKeyward(databaseUrl, bench.plan)
    const management = await startManagement(databaseUrl)
    const { id: organizationId, apiKey, productId, customerId } = await createTenant(management.port)
    try {
      const { id: licenseId, key: licenseKey } = await insertLicense(pool, { organizationId, productId, customerId })
      await insertMachine(pool, { licenseId, machineId: MACHINE })
      const kid = await untilSigned(keyward, apiKey)
      const plain: Check = { kind: 'known', apiKey, licenseKey, machineId: MACHINE, forwardedFor: null }
      const contenders = CONNECTIONS.flatMap((connections): Contender[] => [
        { name: `plain, ${connections}`, server: keyward, checks: [plain], connections },
        { name: `signed, ${connections}`, server: keyward, checks: [{ ...plain, kid }], connections },
      ])
      const rounds = await alternate(contenders, bench)
      const throughput = (connections: number): number[] =>
        compare(rounds, 'perSecond', `signed, ${connections}`, `plain, ${connections}`)
      return {
        goals: [judge('signed', throughput(64))],
        figures: {
          rounds: Object.fromEntries(rounds),
          throughputOfPlain: Object.fromEntries(CONNECTIONS.map((n) => [n, summarize(throughput(n))])),
        },
      }
    } finally {
      await Promise.all([keyward.stop(), management.stop()])
      await pool.query('delete from organizations where id = $1', [organizationId])
      await pool.end()
    }
  },
}
