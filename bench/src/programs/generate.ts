// `npm run bench:generate`: fills a database with licenses, machines and rules by COPY, and writes the API keys and license keys
// that a load generator needs.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { loadShape } from '../data/fill.ts'
import { apiKey, hasAddressRules, licenseFacts, licenseKey, machineId, type Shape } from '../data/population.ts'

const HELP = `npm run bench:generate -- [options]

Adds organizations with licenses, machines and access rules to a database, the same ones for the same seed.
Validators that run already do not hear of them: start them afterwards.

  --database-url URL    of a superuser; or the variable DATABASE_URL
  --licenses N          default 100000
  --machines N          machines that hold a slot, for each license (default 3)
  --max-machines N      slots of a license, or "none" (default 5)
  --rules N             default 10000; every organization gets two more, which name the machine ids
                        bench-blacklisted and bench-excluded
  --organizations N     default 10; those with an odd number have rules about addresses and countries
  --seed N              default 1
  --out FOLDER          where organizations.json and licenses-<n>.tsv go (default .keyward/bench)
  --help`

// Lines in a file of license keys; enough that no cache of a processor holds them all.
const LISTED_LICENSES = 50_000

await main()

async function main(): Promise<void> {
  try {
    const options = parse(process.argv.slice(2))
    if (options === 'help') return console.log(HELP)
    const { seconds, rows } = await loadShape(options.databaseUrl, options.shape)
    const counts = Object.entries(rows).map(([name, count]) => `${count.toLocaleString('en-US')} ${name}`)
    console.log(`${counts.join(', ')} in ${seconds.toFixed(1)} s`)
    writeLists(options.shape, options.out)
    console.log(`API keys and license keys: ${options.out}`)
  } catch (error) {
    console.error(`bench:generate: ${error instanceof Error ? error.message : String(error)}`)
    process.exitCode = 1
  }
}

/** `organizations.json` with the API keys, and a file of license keys for each, as `npm run bench -- --licenses` takes it. */
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
  if (databaseUrl === undefined) throw new Error('name the database with --database-url or DATABASE_URL')
  const shape: Shape = {
    seed: whole('--seed', values.seed ?? '1', 0),
    licenses: whole('--licenses', values.licenses ?? '100000', 0),
    rules: whole('--rules', values.rules ?? '10000', 0),
    organizations: whole('--organizations', values.organizations ?? '10', 1),
    machinesPerLicense: whole('--machines', values.machines ?? '3', 0),
    maxMachines: values['max-machines'] === 'none' ? null : whole('--max-machines', values['max-machines'] ?? '5', 1),
  }
  const { machinesPerLicense, maxMachines } = shape
  if (maxMachines !== null && machinesPerLicense > maxMachines) throw new Error('--machines passes --max-machines')
  return { databaseUrl, shape, out: values.out ?? join(import.meta.dirname, '../../../.keyward/bench') }
}

function whole(name: string, text: string, min: number): number {
  const value = Number(text)
  if (/^\d+$/.test(text) && value >= min && value <= 100_000_000) return value
  throw new Error(`${name} takes a whole number of at least ${min}, got "${text}"`)
}
