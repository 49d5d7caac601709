/** `status`: shows the live validators, their readiness, and the number of transactions that each has yet to apply. */

import { validators as operations } from '@keyward/contract/management/validators'

import type { CliCommand } from '../command.ts'
import { table } from '../output.ts'
import { ago } from '../times.ts'
import { NegativeResult } from './check.ts'
import { type ItemOf, readList } from './lists.ts'

type Validator = ItemOf<typeof operations.listValidators>

export function addStatusCommand(parent: CliCommand): void {
  parent
    .command('status')
    .description('show the version, state and backlog of each validator; exits with 4 if none runs or one is not ready')
    .run(async ({ api, output, context }) => {
      const { items: validators } = await readList(api, operations.listValidators, {})
      const allGood = validators.length > 0 && validators.every((one) => one.ready)
      output.result({ healthy: allGood, validators }, describeAll(validators, context.nowMs()))
      if (!allGood) throw new NegativeResult()
    })
}

function describeAll(validators: readonly Validator[], nowMs: number): string {
  if (validators.length === 0) return 'No validator has reported to Postgres in the last five seconds.'
  const rows = validators.map((one) => [
    one.name,
    one.version ?? 'before 1.0.0',
    one.ready ? 'ready' : 'NOT READY',
    behind(one.behindBy),
    ago(one.seenAt, nowMs),
    ago(one.startedAt, nowMs),
  ])
  return table(['VALIDATOR', 'VERSION', 'STATE', 'BEHIND', 'SEEN', 'STARTED'], rows)
}

function behind(transactions: number | null): string {
  if (transactions === null) return 'still loading'
  return transactions === 0 ? 'nothing' : `${transactions} transaction${transactions === 1 ? '' : 's'}`
}
