/**
 * Runs the contract suite against a client: `npm run contract-suite -- COMMAND [ARGUMENT…]`. Prints the failed cases and the
 * counts of passed cases. Exits with 1 if a case failed. `--timed` before the command runs only the cases of time budgets, one at a time, and
 * requires that no call exceeds its budget by more than 10 %. `--list` prints the list of cases instead.
 */

import { caseList } from './document.ts'
import { BUSY, contractCases, QUIET, runCases, timedCases, vectorCases } from './suite.ts'

const given = process.argv.slice(2)
const isTimed = given[0] === '--timed'
const command = isTimed ? given.slice(1) : given
if (command.length === 0) {
  console.error(
    'Usage: npm run contract-suite -- [--timed] COMMAND [ARGUMENT…]   or   npm run contract-suite -- --list',
  )
  process.exitCode = 2
} else if (command[0] === '--list') {
  console.log(caseList())
} else {
  const groups = [
    ['vectors', vectorCases],
    ['contract cases', contractCases],
  ] as const
  for (const [title, cases] of isTimed ? [['timed cases', timedCases] as const] : groups) {
    const results = await runCases(command, cases, isTimed ? QUIET : BUSY)
    const failed = results.filter(({ problem }) => problem !== null)
    for (const { name, skipped } of results) if (skipped !== null) console.log(`SKIPPED ${name}\n  ${skipped}`)
    for (const { name, problem } of failed) console.log(`FAILED ${name}\n  ${problem}`)
    console.log(`${results.length - failed.length} of ${results.length} ${title} passed`)
    if (failed.length > 0) process.exitCode = 1
  }
}
