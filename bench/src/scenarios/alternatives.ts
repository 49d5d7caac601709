/**
 * Compares Keyward with services that an expert would build from well-known parts. All contenders decide the same checks with the same
 * verdicts.
 */

import { missingPackages, type BaselineName } from '../baselines/companion.ts'
import { descendants, pinTree } from '../harness/cores.ts'
import { judge, type GoalName } from '../harness/goals.ts'
import { CHECK_COUNT, knownChecks, shapeFor } from '../harness/known-checks.ts'
import { openShape } from '../harness/postgres.ts'
import { alternate, compare, type Contender } from '../harness/rounds.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { startBaseline, startKeyward, type Server } from '../harness/servers.ts'
import { summarize } from '../harness/stats.ts'

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
      const keyward = await startKeyward(databaseUrl, bench.plan, { TRUSTED_PROXIES: 'all' })
      servers.push(keyward)
      const contenders: Contender[] = [{ name: KEYWARD, server: keyward, checks, ...withPostgres(bench) }]
      for (const { name, baseline, usesPostgres } of compared) {
        const server = await startBaseline(baseline, databaseUrl, bench.plan)
        servers.push(server)
        bench.log(`${name} was ready after ${(server.readyMs / 1000).toFixed(1)} s`)
        const helpers = { helpers: () => descendants(server.pid) }
        contenders.push({ name, server, checks, ...(usesPostgres ? withPostgres(bench) : helpers) })
      }
      const rounds = await alternate(contenders, bench)
      const cpu = compared.map(({ name }) => [name, summarize(compare(rounds, 'cpuUs', name, KEYWARD))] as const)
      return {
        goals: compared.map(({ name, goal }) => judge(goal, compare(rounds, 'perSecond', KEYWARD, name))),
        figures: { rounds: Object.fromEntries(rounds), cpuTimesKeyward: Object.fromEntries(cpu) },
      }
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
