/**
 * `npm run bench:generate`: fills a database with licenses, machines and rules by COPY. Writes the API keys and license
 * keys that a load generator needs.
 */

import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { fillDatabase } from '../data/fill.ts'
import { apiKey, hasAddressRules, licenseFacts, licenseKey, machineId, type Shape } from '../data/population.ts'
import { runMain, wholeNumber } from '../harness/command-line.ts'
import { formatCount } from '../load/print.ts'

const HELP = `npm run bench:generate -- [options]

Adds organizations with licenses, machines and access rules to a database. The same seed adds the same rows.
Running validators do not receive the rows, so start validators afterwards.

  --database-url URL    database and login of a superuser; or the variable DATABASE_URL
  --licenses N          default 100000
  --machines N          machines per license that hold a slot (default 3)
  --max-machines N      slots per license, or "none" (default 5)
  --rules N             default 10000; every organization gets two more, for the machine ids
                        bench-blacklisted and bench-excluded
  --organizations N     default 10; odd-numbered ones have address and country rules
  --seed N              default 1
  --out FOLDER          folder for organizations.json and licenses-<n>.tsv (default .keyward/bench)
  --help`

/** The maximum number of license keys per file. The rows of that many licenses do not fit into the caches of a processor. */
const LISTED_LICENSES = 50_000

await runMain('bench:generate', async () => {
  const options = parse(process.argv.slice(2))
  if (options === 'help') return console.log(HELP)
  const { seconds, rows } = await fillDatabase(options.databaseUrl, options.shape)
  const counts = Object.entries(rows).map(([name, count]) => `${formatCount(count)} ${name}`)
  console.log(`${counts.join(', ')} in ${seconds.toFixed(1)} s`)
  writeLists(options.shape, options.out)
  console.log(`API keys and license keys: ${options.out}`)
})

/** Writes `organizations.json` with the API keys, and a file of license keys per organization for `npm run bench`. */
function writeLists(shape: Shape, folder: string): void {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const organizations = Array.from({ length: shape.organizations }, (_, organization) => {
    const licensesFile = `licenses-${organization}.tsv`
    writeFileSync(join(folder, licensesFile), licenseLines(shape, organization), { mode: 0o600 })
    return { apiKey: apiKey(shape, organization), addressRules: hasAddressRules(organization), licensesFile }
  })
  writeFileSync(join(folder, 'organizations.json'), `${JSON.stringify({ shape, organizations }, null, 2)}\n`, {
    mode: 0o600,
  })
}

function licenseLines(shape: Shape, organization: number): string {
  let lines = ''
  let listed = 0
  for (
    let license = organization;
    license < shape.licenses && listed < LISTED_LICENSES;
    license += shape.organizations
  ) {
    if (licenseFacts(shape, license).blocked) continue
    const machines = Array.from({ length: shape.machinesPerLicense }, (_, n) => machineId(shape, license, n))
    lines += `${[licenseKey(shape, license), ...machines].join('\t')}\n`
    listed += 1
  }
  return lines
}

function parse(args: string[]): { databaseUrl: string; shape: Shape; out: string } | 'help' {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args,
    options: {
      'database-url': text,
      licenses: text,
      machines: text,
      'max-machines': text,
      rules: text,
      organizations: text,
      seed: text,
      out: text,
      help: { type: 'boolean' },
    },
  })
  if (values.help === true) return 'help'
  const databaseUrl = values['database-url'] ?? process.env['DATABASE_URL']
  if (databaseUrl === undefined) throw new Error('set --database-url or the variable DATABASE_URL')
  const maxMachines = values['max-machines'] ?? '5'
  const shape: Shape = {
    seed: wholeNumber('--seed', values.seed ?? '1'),
    licenses: wholeNumber('--licenses', values.licenses ?? '100000'),
    rules: wholeNumber('--rules', values.rules ?? '10000'),
    organizations: wholeNumber('--organizations', values.organizations ?? '10', 1),
    machinesPerLicense: wholeNumber('--machines', values.machines ?? '3'),
    maxMachines: maxMachines === 'none' ? null : wholeNumber('--max-machines', maxMachines, 1),
  }
  if (shape.machinesPerLicense > (shape.maxMachines ?? Infinity))
    throw new Error(`--machines must be at most --max-machines (${maxMachines}), got ${shape.machinesPerLicense}`)
  return { databaseUrl, shape, out: values.out ?? join(import.meta.dirname, '../../../.keyward/bench') }
}
