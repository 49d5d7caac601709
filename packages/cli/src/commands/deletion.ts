import type { AnyInput, Operation } from '@keyward/contract/operations'

import type { Api } from '../api.ts'
import type { CliCommand } from '../command.ts'
import { printChange, waitOf, withWait } from './wait.ts'

interface Deletion {
  verb: 'delete' | 'revoke'
  /** The resource with its article: `a product`. */
  noun: string
  operation: Operation & { route: `DELETE /${string}/{id}` }
  /** The consequence of the deletion, or the condition that prevents it. */
  consequence: string
  /** Finds the id for the argument. By default, the argument is the id. */
  find?: (api: Api, given: string) => Promise<string>
}

/** Adds a command that deletes a resource. It has `--wait` if validators apply the deletion. */
export function addDeletion(group: CliCommand, { verb, noun, operation, consequence, find }: Deletion): void {
  const bare = noun.replace(/^an? /, '')
  const command = group
    .command(verb)
    .description(`${verb} ${noun}; ${consequence}`)
    .argument('<id>', find ? `the id or key of the ${bare}` : `the id of the ${bare}`)
  if (operation.propagates) withWait(command)
  command.run(async (session, flags, given: string) => {
    const id = find ? await find(session.api, given) : given
    const input: AnyInput = { params: { id } }
    const { appliedBy } = await session.api.call<Operation>(operation, input, operation.propagates && waitOf(flags))
    const done = `${verb}d`
    const text = `${done === 'deleted' ? 'Deleted' : 'Revoked'} the ${bare} ${id}.`
    printChange(session, { data: { id, [done]: true }, appliedBy }, text)
  })
}
