/**
 * Compares Keyward with services that an expert would build from well-known parts. All contenders decide the same checks with the same
 * verdicts.
 */

import { missingPackages, type BaselineName } from '../baselines/installed.ts'
import { barsOf } from '../harness/bars.ts'
import { descendants, pinTree } from '../harness/cores.ts'
import { judge, type GoalName } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, column, describeRounds, requireWrk, type Contender, type Rounds } from '../harness/rounds.ts'
import type { Bench, Outcome, Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward, type Server } from '../harness/servers.ts'
import { ratios, summarize } from '../harness/stats.ts'

const KEYWARD = 'Keyward'

interface Alternative {
  name: string
  baseline: BaselineName
  goal: GoalName
  /** Whether each check is a query to Postgres, so that the processor time of Postgres is part of the figure. */
  usesPostgres: boolean
}

const ALTERNATIVES: readonly Alternative[] = [
  { name: 'nginx + LuaJIT', baseline: 'nginx-lua', goal: 'againstNginx', usesPostgres: false },
  { name: 'Fastify + Redis', baseline: 'fastify-redis', goal: 'againstRedis', usesPostgres: false },
  { name: 'Express + Postgres', baseline: 'express-postgres', goal: 'againstExpress', usesPostgres: true },
]

export const alternatives: Scenario = {
  name: 'alternatives',
  summary: 'known machines, 1 M licenses and 100 k rules, against nginx + LuaJIT, Fastify + Redis, Express + Postgres',
  run: async (bench) => {
    requireWrk()
    const shape = shapeFor(bench, 1_000_000, 100_000)
    const databaseUrl = await openShape(bench.postgres, shape, bench.log)
    const compared = ALTERNATIVES.filter(({ name, baseline }) => {
      const command = missingPackages(baseline)
      if (command !== null) bench.log(`skips ${name}, which is not installed (Debian: ${command})`)
      return command === null
    })
    const checks = knownChecks(shape, { count: CHECK_COUNT, forwarded: true })
    const servers: Server[] = []
    try {
      const keyward = await startKeyward(databaseUrl, bench.plan, { env: { TRUSTED_PROXIES: 'all' } })
      servers.push(keyward)
      const contenders: Contender[] = [{ name: KEYWARD, server: keyward, checks, ...withPostgres(bench) }]
      for (const { name, baseline, usesPostgres } of compared) {
        const server = await startBaseline(baseline, databaseUrl, bench.plan)
        servers.push(server)
        bench.log(`${name} was ready after ${(server.readyMs / 1000).toFixed(1)} s`)
        const helpers = { helpers: () => descendants(server.pid) }
        contenders.push({ name, server, checks, ...(usesPostgres ? withPostgres(bench) : helpers) })
      }
      return describe(await alternate(contenders, bench), compared, bench)
    } finally {
      movePostgres(bench, bench.plan.postgres)
      await Promise.all(servers.map((server) => server.stop()))
    }
  },
}

/** Returns options that move Postgres to the core of the server before each turn, and add the processor time of Postgres to the figure. */
function withPostgres(bench: Bench): Pick<Contender, 'helpers' | 'prepare'> {
  const { pid } = bench.postgres
  return {
    helpers: () => (pid === null ? [] : [pid, ...descendants(pid)]),
    prepare: () => movePostgres(bench, bench.plan.server),
  }
}

function movePostgres(bench: Bench, cores: number[]): void {
  if (bench.postgres.pid !== null) pinTree(bench.postgres.pid, cores, bench.plan)
}

function formatTimes(times: number): string {
  return times < 10 ? times.toFixed(1) : times.toFixed(0)
}

function describe(rounds: Rounds, compared: readonly Alternative[], bench: Bench): Outcome {
  const shown = [{ name: KEYWARD }, ...compared.map(({ name }) => ({ name, constant: true }))]
  const gains = compared.map((alternative) => ({
    ...alternative,
    throughput: ratios(column(rounds, KEYWARD, 'perSecond'), column(rounds, alternative.name, 'perSecond')),
    cpu: summarize(ratios(column(rounds, alternative.name, 'cpuUs'), column(rounds, KEYWARD, 'cpuUs'))),
  }))
  for (const { name } of shown) {
    const us = summarize(column(rounds, name, 'cpuUs'))
    bench.log(
      `${name}: ${us.median.toFixed(2)} us of processor time per check (${us.min.toFixed(2)} to ${us.max.toFixed(2)})`,
    )
  }
  return {
    title: 'Against what an expert would build',
    question: 'How much faster is Keyward than a service that an expert builds from well-known parts?',
    headlines: gains.map(({ name, throughput }) => ({
      figure: `${formatTimes(summarize(throughput).median)} times`,
      text: `the checks of ${name} on the same core`,
    })),
    goals: gains.map(({ goal, throughput }) => judge(goal, summarize(throughput))),
    charts: [
      barsOf(
        'Checks a second, everything on one core',
        'checks/s',
        shown,
        (name) => column(rounds, name, 'perSecond'),
        true,
      ),
      barsOf(
        'Processor time per check, with Redis and Postgres',
        'us',
        shown,
        (name) => column(rounds, name, 'cpuUs'),
        true,
      ),
    ],
    notes: [
      'All contenders know the same licenses, machines and rules, and a test compares their verdicts.',
      'Only Keyward records usage and applies changes while it serves checks. Its figure includes the Postgres that it writes to.',
    ],
    figures: {
      rounds: Object.fromEntries(rounds),
      summaries: describeRounds(rounds),
      cpuTimesKeyward: Object.fromEntries(gains.map(({ name, cpu }) => [name, cpu])),
    },
  }
}
