/** `org create`: creates a vendor with its first management token and API key, which are shown only once. */

import { createdOrganization, createOrganization, plan } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'

export function addOrganizationCommands(parent: Command, open: (command: Command) => Session): void {
  const org = parent.command('org').description('organizations: the vendors')
  org
    .command('create')
    .description('create an organization; shows its first management token and API key, only once')
    .argument('<name>', 'the name of the vendor')
    .addOption(new Option('--plan <plan>', 'the plan').choices(plan.options).default('FREE'))
    .action(async (name: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const parsed = createOrganization.safeParse({ name, ...z.object({ plan }).parse(flags) })
      if (!parsed.success)
        throw new Failure(EXIT.usage, `${JSON.stringify(name)} is not a name for an organization`, {
          details: parsed.error.issues.map((issue) => issue.message),
        })
      const call = { method: 'POST', path: '/organizations', body: parsed.data, as: 'operator' } as const
      const { data } = await api.call(call, createdOrganization)
      const { id, managementToken = null, apiKey = null } = data
      output.result(
        data,
        describe({ id, name, plan: data.plan, 'management token': managementToken, 'API key': apiKey }),
      )
      output.note('\nStore both secrets now; they are not shown again.')
    })
}
