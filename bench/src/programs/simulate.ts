/**
 * Measures the inputs of the simulations on this machine and simulates larger installations. Prints the tables of
 * bench/notes/scaling.md.
 */

import { numbersFrom, runMain } from '../harness/command-line.ts'
import { withPostgres } from '../harness/temporary-postgres.ts'
import { writeResult } from '../report/results.ts'
import { allTables, printTable } from '../simulation/markdown-tables.ts'
import { measure } from '../simulation/measured-inputs.ts'

const HELP = `node bench/src/programs/simulate.ts [options]

  --licenses N      licenses in the measured index (default 200000)
  --help

Writes bench/results/scaling.json.`

await runMain('simulate', async () => {
  const sizes = numbersFrom(HELP, { licenses: 200_000 })
  if (sizes === null) return
  await withPostgres(
    async (url) => {
      const measured = await measure(url, sizes.licenses)
      const tables = allTables(measured)
      for (const [name, value] of Object.entries<number>({ ...measured }))
        console.log(`${name}: ${value.toPrecision(3)}`)
      for (const table of tables) console.log(`\n${printTable(table)}`)
      console.log(writeResult('scaling', { measured, tables }))
    },
    { max_wal_size: '4GB' },
  )
})
