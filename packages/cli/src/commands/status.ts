/** `status`: shows the live validators, their readiness, and the number of transactions that each has yet to apply. */

import { validatorList } from '@keyward/contract/management/validators'
import type { Command } from 'commander'
import type { z } from 'zod'

import type { Api } from '../api.ts'
import { table } from '../output.ts'
import type { Session } from '../session.ts'
import { ago } from '../times.ts'
import { NegativeResult } from './check.ts'

type Validator = z.infer<typeof validatorList>['data'][number]

export function addStatusCommand(parent: Command, open: (command: Command) => Session): void {
  parent
    .command('status')
    .description('show the state and backlog of each validator; exits with 4 if none runs or one is not ready')
    .action(async (_flags: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const validators = await listValidators(api)
      const allGood = validators.length > 0 && validators.every((one) => one.ready)
      output.result({ healthy: allGood, validators }, describeAll(validators, context.nowMs()))
      if (!allGood) throw new NegativeResult()
    })
}

async function listValidators(api: Api): Promise<Validator[]> {
  const validators: Validator[] = []
  let cursor: string | null = ''
  while (cursor !== null) {
    const path: string = `/validators?limit=100${cursor && `&cursor=${encodeURIComponent(cursor)}`}`
    const { data } = await api.call({ method: 'GET', path, as: 'operator' }, validatorList)
    validators.push(...data.data)
    cursor = data.nextCursor
  }
  return validators
}

function describeAll(validators: readonly Validator[], nowMs: number): string {
  if (validators.length === 0) return 'No validator has reported to Postgres in the last five seconds.'
  const rows = validators.map((one) => [
    one.name,
    one.ready ? 'ready' : 'NOT READY',
    behind(one.behindBy),
    ago(one.seenAt, nowMs),
    ago(one.startedAt, nowMs),
  ])
  return table(['VALIDATOR', 'STATE', 'BEHIND', 'SEEN', 'STARTED'], rows)
}

function behind(transactions: number | null): string {
  if (transactions === null) return 'still loading'
  return transactions === 0 ? 'nothing' : `${transactions} transaction${transactions === 1 ? '' : 's'}`
}
