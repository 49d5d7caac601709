/**
 * Measures latency at half of the peak rate: of the ceiling, of Keyward, and of Keyward while rules change and license files are requested.
 * The latency of a check begins when the check is due.
 */

import { fileURLToPath } from 'node:url'

import { createPool } from '@keyward/database'
import { insertLicense, insertMachine } from '@keyward/testkit'

import type { Settings, Work } from '../harness/background.ts'
import { type Child, startChild } from '../harness/children.ts'
import { asGenerator, pinPrefix, pinTree } from '../harness/cores.ts'
import { judge } from '../harness/goals.ts'
import { knownChecks, CHECK_COUNT, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column } from '../harness/rounds.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { createTenant, type Server, startBaseline, startKeyward, startManagement } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'
import { createSupply, type Check } from '../load/checks.ts'
import { runLoad } from '../load/generator.ts'
import type { LatencySummary } from '../load/histogram.ts'
import type { LoadOutcome } from '../load/outcome.ts'

const CHANGES_PER_SECOND = 100
/** The number of requests that 432,000 installations cause if each requests a file once a day. */
const FILES_PER_SECOND = 5
/** The time in which V8 optimizes the code that applies changes, on the core that serves checks. */
const WARM_UP_MS = 60_000
const SETTLE_MS = 500
/** The median latency of the ceiling above which the generator's own delay dominates. */
const GENERATOR_LIMIT_US = 300
/** The time that a generator with priority sleeps between sends. */
const SLEEP_US = 1_000
const BACKGROUND = fileURLToPath(new URL('../harness/background.ts', import.meta.url))
const QUIET = 'Keyward, quiet'
const CHANGING = `Keyward, ${CHANGES_PER_SECOND} rules a second change, ${FILES_PER_SECOND} files a second`

interface Contender {
  name: string
  server: Server
  checks: readonly Check[]
  prepare?: () => void
}

export const latency: Scenario = {
  name: 'latency',
  summary: 'p99 at half of the peak rate, quiet and while rules change and files are requested, against the ceiling',
  run: async (bench) => {
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    // In quiet rounds, rules change in a database without a validator, so that Postgres takes the same share of the machine.
    const elsewhereUrl = await openShape(bench.postgres, shapeFor(bench, 1000, 10), bench.log)
    const ceiling = await startBaseline('ceiling', databaseUrl, bench.plan)
    const keyward = await startKeyward(databaseUrl, bench.plan)
    const management = await startManagement(databaseUrl)
    pinTree(management.pid, bench.plan.postgres, bench.plan)
    const { background, removeTenant } = await startBackground(bench, databaseUrl, management.port)
    const disturb = (work: Work) => (): void => background.send(JSON.stringify(work))
    const quiet = disturb({ databaseUrl: elsewhereUrl, requestsFiles: false })
    try {
      const checks = knownChecks(shape, { count: CHECK_COUNT / 4, addressRules: true })
      const rate = await findRate(keyward, ceiling, checks, bench)
      const prepare = disturb({ databaseUrl, requestsFiles: true })
      const changing = { name: CHANGING, server: keyward, checks, prepare }
      const contenders: Contender[] = [
        { name: 'ceiling', server: ceiling, checks, prepare: quiet },
        { name: QUIET, server: keyward, checks, prepare: quiet },
        changing,
      ]
      await takeTurn(changing, rate.perSecond, bench.quick ? 500 : WARM_UP_MS, bench)
      const rounds = await alternateAtRate(contenders, rate.perSecond, bench)
      for (const line of background.lines) bench.log(line)
      const p99 = (name: string): number[] => rounds.get(name)!.map(({ percentilesUs }) => percentilesUs['99']!)
      return {
        goals: [
          judge('p99', ratios(p99(QUIET), p99('ceiling'))),
          judge('p99Changing', ratios(p99(CHANGING), p99(QUIET))),
        ],
        figures: { rate, failures: background.lines, rounds: Object.fromEntries(rounds) },
      }
    } finally {
      await Promise.all([ceiling, keyward, background, management].map((server) => server.stop()))
      await removeTenant()
    }
  },
}

/** Starts the process that changes rules and requests files, with a license of a new organization, which `removeTenant` deletes. */
async function startBackground(
  bench: Bench,
  databaseUrl: string,
  managementPort: number,
): Promise<{ background: Child; removeTenant: () => Promise<void> }> {
  const pool = createPool(databaseUrl, { name: 'latency', max: 1 })
  const { id: organizationId, apiKey, productId, customerId } = await createTenant(managementPort)
  const { id: licenseId, key: licenseKey } = await insertLicense(pool, { organizationId, productId, customerId })
  const machineId = 'bench'
  await insertMachine(pool, { licenseId, machineId })
  const rates = { changesPerSecond: CHANGES_PER_SECOND, filesPerSecond: FILES_PER_SECOND }
  const settings: Settings = { ...rates, managementPort, apiKey, licenseKey, machineId }
  const background = await startChild({
    file: BACKGROUND,
    env: { BACKGROUND: JSON.stringify(settings) },
    prefix: pinPrefix(bench.plan.postgres, bench.plan),
  })
  const removeTenant = async (): Promise<void> => {
    await pool.query('delete from organizations where id = $1', [organizationId])
    await pool.end()
  }
  return { background, removeTenant }
}

/**
 * Returns half of the server's peak rate. If the generator delays checks at this rate, lowers the rate in steps of 15 %, at most eight
 * times, because the generator's own delays would hide the server's.
 */
async function findRate(server: Server, ceiling: Server, checks: readonly Check[], bench: Bench) {
  const short = { ...bench, rounds: 3, roundMs: Math.min(bench.roundMs, 2000) }
  const peak = await alternate([{ name: 'peak', server, checks }], short)
  const peakPerSecond = summarize(column(peak, 'peak', 'perSecond')).median
  const limitUs = GENERATOR_LIMIT_US + (bench.plan.loadFirst ? SLEEP_US : 0)
  let perSecond = peakPerSecond / 2
  for (let attempt = 0; attempt < 8; attempt += 1) {
    const { latency: found, errors } = await pace({ name: 'ceiling', server: ceiling, checks }, perSecond, 1000, bench)
    if (found.percentilesUs['50']! < limitUs && Object.keys(errors).length === 0) break
    perSecond *= 0.85
  }
  const limitedByGenerator = perSecond < peakPerSecond / 2
  bench.log(`sends ${Math.round(perSecond)} checks a second${limitedByGenerator ? ', limited by the generator' : ''}`)
  return { perSecond, peakPerSecond, limitedByGenerator }
}

/** Runs all rounds like `alternate`, but at a fixed rate. Throws if a response is not VALID. */
async function alternateAtRate(
  contenders: readonly Contender[],
  perSecond: number,
  bench: Bench,
): Promise<Map<string, LatencySummary[]>> {
  const rounds = new Map<string, LatencySummary[]>(contenders.map(({ name }) => [name, []]))
  for (let round = 0; round < bench.rounds; round += 1) {
    for (let turn = 0; turn < contenders.length; turn += 1) {
      const contender = contenders[(turn + round) % contenders.length]
      if (contender === undefined) continue
      rounds.get(contender.name)?.push(await takeTurn(contender, perSecond, bench.roundMs, bench))
    }
    const medians = [...rounds].map(([name, list]) => {
      const p99 = summarize(list.map(({ percentilesUs }) => percentilesUs['99']!)).median
      return `${name} p99 ${p99.toFixed(0)} us`
    })
    bench.log(`round ${round + 1} of ${bench.rounds}   ${medians.join('   ')}`)
  }
  return rounds
}

/** Measures one contender once. Throws if a response is not VALID. */
async function takeTurn(
  contender: Contender,
  perSecond: number,
  durationMs: number,
  bench: Bench,
): Promise<LatencySummary> {
  bench.signal.throwIfAborted()
  contender.prepare?.()
  const outcome = await pace(contender, perSecond, durationMs, bench)
  bench.signal.throwIfAborted()
  const wrong = Object.entries(outcome.codes ?? {}).filter(([code]) => code !== 'VALID')
  if (wrong.length > 0) throw new Error(`${contender.name}: responses that are not VALID: ${JSON.stringify(wrong)}`)
  return outcome.latency
}

function pace(contender: Contender, ratePerSecond: number, durationMs: number, bench: Bench): Promise<LoadOutcome> {
  const { connections, plan, signal } = bench
  const { url } = contender.server
  const nextRequest = createSupply(contender.checks, 'v2', url)
  const options = { url, nextRequest, ratePerSecond, connections, durationMs, warmUpMs: SETTLE_MS, signal }
  return asGenerator(plan, () => runLoad({ ...options, sleeps: plan.loadFirst }))
}
