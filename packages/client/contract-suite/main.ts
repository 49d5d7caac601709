/**
 * Runs the contract suite against a client: `npm run contract-suite -- COMMAND [ARGUMENT…]`. Prints the failed cases and the
 * counts of passed cases. Exits with 1 if a case failed. `--list` prints the list of cases instead.
 */

import { caseList } from './document.ts'
import { contractCases, runCases, vectorCases } from './suite.ts'

const command = process.argv.slice(2)
if (command.length === 0) {
  console.error('Usage: npm run contract-suite -- COMMAND [ARGUMENT…]   or   npm run contract-suite -- --list')
  process.exitCode = 2
} else if (command[0] === '--list') {
  console.log(caseList())
} else {
  for (const [title, cases] of [
    ['vectors', vectorCases],
    ['contract cases', contractCases],
  ] as const) {
    const results = await runCases(command, cases)
    const failed = results.filter(({ problem }) => problem !== null)
    for (const { name, skipped } of results) if (skipped !== null) console.log(`SKIPPED ${name}\n  ${skipped}`)
    for (const { name, problem } of failed) console.log(`FAILED ${name}\n  ${problem}`)
    console.log(`${results.length - failed.length} of ${results.length} ${title} passed`)
    if (failed.length > 0) process.exitCode = 1
  }
}
