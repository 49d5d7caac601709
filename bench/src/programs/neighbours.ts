/**
 * Measures how a hostile organization affects a quiet one. Attacks run one at a time. Alternatively, all run together for
 * several minutes while the program records the memory of every process. All processes run on 127.0.0.1.
 */

import { parseArgs } from 'node:util'

import { runMain, wholeNumber } from '../harness/command-line.ts'
import { descendants } from '../harness/cores.ts'
import { SchedulerGroups } from '../harness/scheduler-groups.ts'
import { loadsOf } from '../harness/servers.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { ATTACKS } from '../neighbours/attacks.ts'
import { CONTROLS } from '../neighbours/controls.ts'
import { type Generator, startGenerator } from '../neighbours/generator.ts'
import { postgresMib, residentMib } from '../neighbours/memory.ts'
import { errorsOf, line, type Row, rowOf, summaryOf } from '../neighbours/table.ts'
import { KINDS } from '../neighbours/victim.ts'
import { type RunningServices, startWorld } from '../neighbours/world.ts'
import { writeResult } from '../report/results.ts'

const HELP = `node bench/src/programs/neighbours.ts [options]

  --seconds N       length of a measurement (default 3)
  --rounds N        rounds; each measures before and during every attack (default 3)
  --licenses N      licenses of the hostile organization (default 900000)
  --only TEXT       only attacks whose name contains this text
  --defaults        use the default rate limits instead of high ones
  --together N      run all attacks at the same time for N minutes, with the memory of every process
  --list            print the names of the attacks
  --help

Prints the 99th percentiles of the quiet organization's requests before and under attack, and writes
bench/results/neighbours.json, neighbours-defaults.json or, with --together, neighbours-together.json.`

const SETTINGS = { max_wal_size: '4GB', max_connections: '100' }
const SETTLE_MS = 1_000
const TOGETHER_SHARE = 0.2
const WINDOW_MS = 15_000
/** The share of the quiet organization's generator in relation to a service, and of a service in relation to the attacker's generator. */
const GENERATOR_SHARE = 16

await runMain('neighbours', async () => {
  const { values } = parseArgs({
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '3' },
      licenses: { type: 'string', default: '900000' },
      only: { type: 'string', default: '' },
      together: { type: 'string', default: '0' },
      defaults: { type: 'boolean', default: false },
      list: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  const minutes = wholeNumber('--together', values.together)
  const loads = minutes > 0 ? ATTACKS : [...CONTROLS, ...ATTACKS]
  const names = loads.map(({ name }) => name).filter((name) => name.includes(values.only))
  if (values.help) return console.log(HELP)
  if (values.list) return console.log(names.join('\n'))
  if (names.length === 0) throw new Error(`no attack has a name with "${values.only}"; --list prints the names`)
  const seconds = wholeNumber('--seconds', values.seconds, 1)
  const rounds = wholeNumber('--rounds', values.rounds, 1)
  const licenses = wholeNumber('--licenses', values.licenses, 100)
  await withPostgres(async (url, pid) => {
    const services = await startWorld(url, licenses, values.defaults)
    const victim = startGenerator('victim', services.world)
    const attacker = startGenerator('attacker', services.world)
    const groups = separate({ postgresPid: pid, services, victim, attacker })
    const parts = { services, victim, attacker, postgresPid: pid }
    await victim.measure(SETTLE_MS * 3) // warms up
    if (minutes > 0) await attackTogether(parts, names, minutes)
    else await attackInTurn(parts, names, { seconds, rounds, licenses, hasDefaults: values.defaults })
    victim.end()
    attacker.end()
    await services.stop()
    groups.remove()
  }, SETTINGS)
})

interface Parts {
  services: RunningServices
  victim: Generator
  attacker: Generator
  postgresPid: number
}

interface Sizes {
  seconds: number
  rounds: number
  licenses: number
  /** Whether the rate limits are the default ones. */
  hasDefaults: boolean
}

/**
 * Puts Postgres and each service into a scheduler group of its own, as containers do. The group of the quiet organization's generator has a
 * larger share, and that of the attackers' generator a smaller one.
 */
function separate({ postgresPid, services, victim, attacker }: Parts): SchedulerGroups {
  const groups = new SchedulerGroups()
  const isSeparate = [
    groups.add('postgres', [postgresPid, ...descendants(postgresPid)]),
    groups.add('management', [services.management.pid]),
    groups.add('validator', [services.validator.pid]),
    groups.add('victim', [victim.pid], GENERATOR_SHARE),
    groups.add('attacker', [attacker.pid], 1 / GENERATOR_SHARE),
  ].every(Boolean)
  if (!isSeparate) console.error('neighbours: cannot separate the services as containers do; run as root on Linux')
  return groups
}

/** Measures every attack once per round, with a measurement of the quiet organization directly before it. */
async function attackInTurn(parts: Parts, names: readonly string[], sizes: Sizes): Promise<void> {
  const { victim, attacker } = parts
  const rows = new Map<string, Row>(names.map((name) => [name, rowOf()]))
  for (let round = 1; round <= sizes.rounds; round++)
    for (const [name, row] of rows) {
      row.quiet.push(await victim.measure(sizes.seconds * 1_000))
      attacker.attack([name], 1)
      await pause(SETTLE_MS)
      row.attacked.push(await victim.measure(sizes.seconds * 1_000))
      row.responses.push(await attacker.stop())
      await pause(SETTLE_MS)
      if (round === sizes.rounds) console.log(line(name, row))
    }
  const data = [...rows].map(([name, row]) => Object.assign({ name }, summaryOf(row)))
  const over = data.flatMap(({ name, kinds }) =>
    KINDS.filter((kind) => kinds[kind].ratio > 2).map((kind) => `${name}: ${kind} ${kinds[kind].ratio}`),
  )
  const errors = data.reduce((sum, row) => sum + row.errors.quiet + row.errors.attacked, 0)
  console.log(`\nmore than twice quiet at p99: ${over.length === 0 ? 'none' : `\n  ${over.join('\n  ')}`}`)
  console.log(`errors of the quiet organization: ${errors}`)
  console.log(
    writeResult(sizes.hasDefaults ? 'neighbours-defaults' : 'neighbours', { ...sizes, attacks: data, errors }),
  )
}

/** Runs all attacks at the same time. Throws if a service or Postgres ends. */
async function attackTogether(parts: Parts, names: readonly string[], minutes: number): Promise<void> {
  const { services, victim, attacker, postgresPid } = parts
  const sample = (): Record<string, number> => ({
    validator: residentMib(services.validator.pid),
    management: residentMib(services.management.pid),
    postgres: postgresMib(postgresPid),
  })
  const windows: object[] = []
  const row = rowOf()
  row.quiet.push(await victim.measure(WINDOW_MS))
  console.log(`before: MiB ${JSON.stringify(sample())}`)
  attacker.attack(names, TOGETHER_SHARE)
  const endsMs = performance.now() + minutes * 60_000
  while (performance.now() < endsMs) {
    const most = sample()
    const timer = setInterval(() => {
      for (const [name, mib] of Object.entries(sample())) most[name] = Math.max(most[name] ?? 0, mib)
    }, 500)
    const measured = await victim.measure(Math.min(WINDOW_MS, endsMs - performance.now()))
    clearInterval(timer)
    row.attacked.push(measured)
    const window = { minute: minutes - (endsMs - performance.now()) / 60_000, mib: most, errors: errorsOf([measured]) }
    windows.push(window)
    console.log(
      `minute ${window.minute.toFixed(2)}: MiB ${JSON.stringify(most)}, errors ${JSON.stringify(measured.errors)}`,
    )
    for (const [name, mib] of Object.entries(most)) if (mib === 0) throw new Error(`${name} has ended`)
  }
  row.responses.push(await attacker.stop())
  const loads = await loadsOf(services.validator.adminPort)
  console.log(line('all together', row))
  console.log(`loads of the validator: ${loads} (1 means that no attack caused a reload)`)
  console.log(writeResult('neighbours-together', { minutes, windows, loads, ...summaryOf(row) }))
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
