// `npm run bench:local`: measures Keyward and its baselines side by side on this machine and draws the report.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { stopChildren } from '../harness/children.ts'
import { pinTree, planCores } from '../harness/cores.ts'
import { openPostgres, type BenchPostgres } from '../harness/postgres.ts'
import type { Bench, Scenario } from '../harness/scenario.ts'
import { renderReport } from '../report/page.ts'
import { readResults, RESULTS_FOLDER, writeResult } from '../report/results.ts'
import { SCENARIOS } from '../scenarios/catalog.ts'

const HELP = `npm run bench:local -- [scenarios] [options]

Starts Keyward and its baselines pinned to cores, measures them in turn and writes bench/results/*.json and report.html.
Without a name all scenarios run, which takes about an hour; generated data stays under .keyward/bench-postgres.

${SCENARIOS.map(({ name, summary }) => `  ${name.padEnd(12)}${summary}`).join('\n')}

  --quick             short rounds, to see that everything works; the figures mean little
  --rounds N          default 13
  --seconds N         of one contender in one round (default 5)
  --connections N     default 64
  --report            only draw the report again
  --help`

await main()

async function main(): Promise<void> {
  const stop = new AbortController()
  process.on('SIGINT', () => stop.abort(new Error('stopped')))
  process.on('SIGTERM', () => stop.abort(new Error('stopped')))
  let postgres: BenchPostgres | undefined
  try {
    const options = parse(process.argv.slice(2))
    if (options === 'help') return console.log(HELP)
    if (options.report) return drawReport()
    const plan = planCores()
    if (!plan.pinned) console.log('taskset is not here, so nothing is pinned to cores: expect more spread')
    postgres = await openPostgres(plan, join(import.meta.dirname, '../../../.keyward/bench-postgres'))
    pinTree(process.pid, plan.load, plan)
    const bench: Bench = { ...options, plan, postgres, signal: stop.signal, say: (line) => console.log(`  ${line}`) }
    for (const scenario of options.scenarios) await runScenario(scenario, bench)
    drawReport()
  } catch (error) {
    console.error(`bench:local: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  } finally {
    await stopChildren()
    await postgres?.stop()
  }
}

// One that fails does not take the others along: its reason is told, and the program ends with 1.
async function runScenario(scenario: Scenario, bench: Bench): Promise<void> {
  bench.signal.throwIfAborted()
  console.log(`${scenario.name}: ${scenario.summary}`)
  try {
    const outcome = await scenario.run(bench)
    const { rounds, roundMs, connections, quick, plan } = bench
    writeResult(`local-${scenario.name}`, { ...outcome, quick, settings: { rounds, roundMs, connections, plan } })
    for (const { text, direction, value, unit, reached, measured } of outcome.goals) {
      const { median, min, max } = measured
      const figures = `${format(median)} ${unit} (${format(min)} to ${format(max)})`
      console.log(`  ${reached ? 'reached' : 'MISSED '}  ${text}: ${figures}, goal ${direction} ${value}`)
    }
  } catch (error) {
    if (bench.signal.aborted) throw error
    console.error(`  ${scenario.name} failed: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  } finally {
    await stopChildren()
  }
}

function drawReport(): void {
  const path = join(RESULTS_FOLDER, 'report.html')
  writeFileSync(
    path,
    renderReport(
      readResults(),
      SCENARIOS.map(({ name }) => `local-${name}`),
    ),
  )
  console.log(`report: ${path}`)
}

function format(value: number): string {
  return value >= 1000 ? value.toFixed(0) : value.toPrecision(3)
}

interface LocalOptions {
  scenarios: Scenario[]
  quick: boolean
  rounds: number
  roundMs: number
  connections: number
  report: boolean
}

function parse(args: string[]): LocalOptions | 'help' {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean' } as const
  const { values, positionals } = parseArgs({
    args,
    allowPositionals: true,
    options: { quick: flag, report: flag, help: flag, rounds: text, seconds: text, connections: text },
  })
  if (values.help === true) return 'help'
  const scenarios = positionals.map((name) => {
    const found = SCENARIOS.find((scenario) => scenario.name === name)
    if (found !== undefined) return found
    throw new Error(
      `there is no scenario "${name}"; there are ${SCENARIOS.map((scenario) => scenario.name).join(', ')}`,
    )
  })
  const quick = values.quick === true
  return {
    scenarios: scenarios.length === 0 ? [...SCENARIOS] : scenarios,
    quick,
    rounds: whole('--rounds', values.rounds ?? (quick ? '3' : '13')),
    roundMs: whole('--seconds', values.seconds ?? (quick ? '1' : '5')) * 1000,
    connections: whole('--connections', values.connections ?? '64'),
    report: values.report === true,
  }
}

function whole(name: string, text: string): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value > 0 && value <= 100_000) return value
  throw new Error(`${name} takes a whole number above 0, got "${text}"`)
}
