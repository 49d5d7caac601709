// Measures on this machine what Keyward's growth depends on, and simulates the installations that this machine cannot
// reach. The tables are those of docs/scaling.md; the result stands in bench/results/scaling.json.
// `node bench/src/programs/simulate.ts --help` lists what can be set.
import { mkdtempSync, rmSync } from 'node:fs'
import { chmod } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'

import { migrate } from '@keyward/database/migrate'
import { startPostgres } from '@keyward/embedded-postgres'

import { writeResult } from '../report/results.ts'
import { allTables, printTable } from '../simulation/markdown-tables.ts'
import { measure, type Measured } from '../simulation/measured-inputs.ts'

const HELP = `node bench/src/programs/simulate.ts [options]

  --licenses N      how many the measured index holds (default 200000)
  --help`

await main()

async function main(): Promise<void> {
  const options = {
    licenses: { type: 'string', default: '200000' },
    help: { type: 'boolean', default: false },
  } as const
  const { values } = parseArgs({ options })
  if (values.help) return console.log(HELP)
  const measured = await measureHere(Number(values.licenses))
  const tables = allTables(measured)
  for (const [name, value] of Object.entries<number>({ ...measured })) console.log(`${name}: ${value.toPrecision(3)}`)
  for (const table of tables) console.log(`\n${printTable(table)}`)
  console.log(writeResult('scaling', { measured, tables }))
}

async function measureHere(licenses: number): Promise<Measured> {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-scaling-'))
  await chmod(folder, 0o755) // Postgres runs as another user when root runs this
  const postgres = await startPostgres({ dataFolder: join(folder, 'data'), settings: { max_wal_size: '4GB' } })
  try {
    await migrate(postgres.url)
    return await measure(postgres.url, licenses)
  } finally {
    await postgres.stop()
    rmSync(folder, { recursive: true, force: true })
  }
}
