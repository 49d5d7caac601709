/** Measures how a hostile organization affects a quiet one. Attacks run one at a time. All processes run on 127.0.0.1. */

import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'

import { runMain, wholeNumber } from '../harness/command-line.ts'
import { descendants } from '../harness/cores.ts'
import { writeResult } from '../harness/results.ts'
import { SchedulerGroups } from '../harness/scheduler-groups.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { ATTACKS } from '../neighbours/attacks.ts'
import { type Generator, startGenerator } from '../neighbours/generator.ts'
import { line, type Row, summaryOf } from '../neighbours/table.ts'
import { KINDS } from '../neighbours/victim.ts'
import { type RunningServices, startWorld } from '../neighbours/world.ts'

const HELP = `npm run bench:neighbours -- [options]

  --seconds N       length of a measurement (default 3)
  --rounds N        rounds; each measures before and during every attack (default 3)
  --licenses N      licenses of the hostile organization (default 900000)
  --only TEXTS      only attacks whose name contains one of these texts, which commas separate
  --defaults        use the default rate limits instead of high ones
  --list            print the names of the attacks
  --help

Prints the 99th percentiles of the quiet organization's requests before and under attack, and writes
bench/results/neighbours.json or neighbours-defaults.json.`

const SETTINGS = { max_wal_size: '4GB', max_connections: '100' }
const SETTLE_MS = 1_000
/** The share of the quiet organization's generator in relation to a service, and of a service in relation to the attacker's generator. */
const GENERATOR_SHARE = 16

await runMain('neighbours', async () => {
  const text = { type: 'string' } as const
  const flag = { type: 'boolean', default: false } as const
  const { values } = parseArgs({
    options: { seconds: text, rounds: text, licenses: text, only: text, defaults: flag, list: flag, help: flag },
  })
  const texts = (values.only ?? '').split(',')
  const names = ATTACKS.map(({ name }) => name).filter((name) => texts.some((one) => name.includes(one)))
  if (values.help) return console.log(HELP)
  if (values.list) return console.log(names.join('\n'))
  if (names.length === 0) throw new Error(`no attack has a name with one of "${values.only}"; --list prints the names`)
  const sizes = {
    seconds: wholeNumber('--seconds', values.seconds ?? '3', 1),
    rounds: wholeNumber('--rounds', values.rounds ?? '3', 1),
    licenses: wholeNumber('--licenses', values.licenses ?? '900000', 100),
    hasDefaults: values.defaults,
  }
  await withPostgres(async (url, pid) => {
    const services = await startWorld(url, sizes.licenses, values.defaults)
    const victim = startGenerator('victim', services.world)
    const attacker = startGenerator('attacker', services.world)
    const groups = separate(pid, services, victim, attacker)
    try {
      await victim.measure(SETTLE_MS * 3) // warms up
      await attackInTurn(victim, attacker, names, sizes)
    } finally {
      victim.end()
      attacker.end()
      await services.stop()
      groups.remove()
    }
  }, SETTINGS)
})

/**
 * Puts Postgres and each service into a scheduler group of its own, as containers do. The group of the quiet organization's generator has a
 * larger share, and that of the attackers' generator a smaller one.
 */
function separate(
  postgresPid: number,
  services: RunningServices,
  victim: Generator,
  attacker: Generator,
): SchedulerGroups {
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

interface Sizes {
  seconds: number
  rounds: number
  licenses: number
  /** Whether the rate limits are the default ones. */
  hasDefaults: boolean
}

/** Measures every attack once per round, with a measurement of the quiet organization directly before it. */
async function attackInTurn(victim: Generator, attacker: Generator, names: readonly string[], sizes: Sizes) {
  const rows = new Map<string, Row>(names.map((name) => [name, { quiet: [], attacked: [], responses: [] }]))
  for (let round = 1; round <= sizes.rounds; round++)
    for (const [name, row] of rows) {
      row.quiet.push(await victim.measure(sizes.seconds * 1_000))
      attacker.attack(name)
      await sleep(SETTLE_MS)
      row.attacked.push(await victim.measure(sizes.seconds * 1_000))
      row.responses.push(await attacker.stop())
      await sleep(SETTLE_MS)
      if (round === sizes.rounds) console.log(line(name, row))
    }
  const attacks = [...rows].map(([name, row]) => Object.assign({ name }, summaryOf(row)))
  const over = attacks.flatMap(({ name, kinds }) =>
    KINDS.filter((kind) => kinds[kind].ratio > 2).map((kind) => `${name}: ${kind} ${kinds[kind].ratio}`),
  )
  const errors = attacks.reduce((sum, row) => sum + row.errors.quiet + row.errors.attacked, 0)
  console.log(`\nmore than twice quiet at p99: ${over.length === 0 ? 'none' : `\n  ${over.join('\n  ')}`}`)
  console.log(`errors of the quiet organization: ${errors}`)
  console.log(writeResult(sizes.hasDefaults ? 'neighbours-defaults' : 'neighbours', { ...sizes, attacks, errors }))
}
