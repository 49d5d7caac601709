import type { Command } from 'commander'

import type { Api } from '../api.ts'
import type { Session } from '../session.ts'
import { noContent } from './lists.ts'

interface Deletion {
  verb: 'delete' | 'revoke'
  /** The resource with its article: `a product`. */
  noun: string
  /** The path of the list, such as `/products`. */
  path: string
  /** The consequence of the deletion, or the condition that prevents it. */
  consequence: string
  /** Finds the id for the argument. By default, the argument is the id. */
  find?: (api: Api, given: string) => Promise<string>
}

export function addDeletion(
  group: Command,
  open: (command: Command) => Session,
  { verb, noun, path, consequence, find }: Deletion,
): void {
  const bare = noun.replace(/^an? /, '')
  group
    .command(verb)
    .description(`${verb} ${noun}; ${consequence}`)
    .argument('<id>', find ? `the id or key of the ${bare}` : `the id of the ${bare}`)
    .action(async (given: string, _flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const id = find ? await find(api, given) : given
      await api.call({ method: 'DELETE', path: `${path}/${encodeURIComponent(id)}` }, noContent)
      const done = `${verb}d`
      output.result({ id, [done]: true }, `${done === 'deleted' ? 'Deleted' : 'Revoked'} the ${bare} ${id}.`)
    })
}
