/** `npm run bench:local`: measures Keyward and its baselines side by side on this machine. */

import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { stopChildren } from '../harness/children.ts'
import { runMain, wholeNumber } from '../harness/command-line.ts'
import { pinTree, planCores } from '../harness/cores.ts'
import { openPostgres, type BenchPostgres } from '../harness/postgres.ts'
import { writeResult } from '../harness/results.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { hasWrk } from '../load/wrk.ts'
import { alternatives } from '../scenarios/alternatives.ts'
import { embedded } from '../scenarios/embedded.ts'
import { growth } from '../scenarios/growth.ts'
import { known } from '../scenarios/known.ts'
import { latency } from '../scenarios/latency.ts'
import { signed } from '../scenarios/signed.ts'

const SCENARIOS: readonly Scenario[] = [known, embedded, alternatives, growth, latency, signed]

const HELP = `npm run bench:local -- [scenarios] [options]

Starts Keyward and its baselines pinned to cores, measures them in alternating rounds and writes one JSON file per
scenario to bench/results. Without a name all scenarios run, which takes about half an hour. Generated data stays in
.keyward/bench-postgres for the next run.

${SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(14)}${summary}`).join('\n')}

  --quick             short rounds over small data, to test that everything works; the figures are not meaningful
  --rounds N          rounds per contender (default 13)
  --seconds N         length of a round (default 5)
  --connections N     connections of the load generator (default 64)
  --help`

await runMain('bench:local', main)

async function main(): Promise<void> {
  const stop = new AbortController()
  process.on('SIGINT', () => stop.abort(new Error('stopped')))
  process.on('SIGTERM', () => stop.abort(new Error('stopped')))
  let postgres: BenchPostgres | undefined
  try {
    const options = parse(process.argv.slice(2))
    if (options === 'help') return console.log(HELP)
    if (!hasWrk())
      throw new Error(
        'wrk is not installed; other generators are slower than the servers (Debian: apt-get install wrk)',
      )
    const plan = planCores()
    if (!plan.pinned)
      console.log('taskset is not installed, so no process is pinned to a core and the rounds spread more')
    postgres = await openPostgres(plan, join(import.meta.dirname, '../../../.keyward/bench-postgres'))
    pinTree(process.pid, plan.load, plan)
    const bench: Bench = { ...options, plan, postgres, signal: stop.signal, log: (line) => console.log(`  ${line}`) }
    for (const scenario of options.scenarios) await runScenario(scenario, bench)
  } finally {
    await stopChildren()
    await postgres?.stop()
  }
}

/** Runs one scenario. If it fails, prints the reason and sets exit code 1, and the other scenarios still run. */
async function runScenario(scenario: Scenario, bench: Bench): Promise<void> {
  bench.signal.throwIfAborted()
  console.log(`${scenario.name}: ${scenario.summary}`)
  try {
    const outcome = await scenario.run(bench)
    const { rounds, roundMs, connections, quick, plan } = bench
    const settings = { quick, rounds, roundMs, connections, plan }
    const path = writeResult(`local-${scenario.name}`, { ...outcome, settings })
    for (const { text, direction, value, unit, reached, measured } of outcome.goals) {
      const { median, min, max } = measured
      const figures = `${format(median)} ${unit} (${format(min)} to ${format(max)})`
      console.log(`  ${reached ? 'reached' : 'MISSED '}  ${text}: ${figures}, goal ${direction} ${value}`)
    }
    console.log(`  ${path}`)
  } catch (error) {
    if (bench.signal.aborted) throw error
    console.error(`  ${scenario.name} failed: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  } finally {
    await stopChildren()
  }
}

function format(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(3)
}

function parse(args: string[]) {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const options = { quick: flag, help: flag, rounds: text, seconds: text, connections: text }
  const { values, positionals } = parseArgs({ args, allowPositionals: true, options })
  if (values.help === true) return 'help'
  const scenarios = positionals.map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name)
    if (found !== undefined) return found
    throw new Error(`unknown scenario "${name}". Scenarios: ${SCENARIOS.map((each) => each.name).join(', ')}`)
  })
  const quick = values.quick === true
  return {
    scenarios: scenarios.length === 0 ? SCENARIOS : scenarios,
    quick,
    rounds: wholeNumber('--rounds', values.rounds ?? (quick ? '3' : '13'), 1, 1_000),
    roundMs: wholeNumber('--seconds', values.seconds ?? (quick ? '1' : '5'), 1, 3_600) * 1_000,
    connections: wholeNumber('--connections', values.connections ?? '64', 1, 10_000),
  }
}
