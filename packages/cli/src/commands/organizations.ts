/** `org create`: a vendor with its first management token and API key, which are shown this once. */
import { createdOrganization, createOrganization, plan } from '@keyward/contract'
import { type Command, Option } from 'commander'

import { describe } from '../output.ts'
import type { Session } from '../session.ts'

export function addOrganizationCommands(parent: Command, open: (command: Command) => Session): void {
  const org = parent.command('org').description('organizations: the vendors')
  org
    .command('create')
    .description('create an organization; shows its first management token and API key, this once')
    .argument('<name>', 'the name of the vendor')
    .addOption(new Option('--plan <plan>', 'the plan').choices(plan.options).default('FREE'))
    .action(async (name: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const body = createOrganization.parse({ name, ...createOrganization.pick({ plan: true }).strip().parse(flags) })
      const { data } = await api.call(
        { method: 'POST', path: '/organizations', body, as: 'operator' },
        createdOrganization,
      )
      const { id, managementToken = null, apiKey = null } = data
      output.result(
        data,
        describe({ id, name, plan: data.plan, 'management token': managementToken, 'API key': apiKey }),
      )
      output.note('\nKeep both secrets now; they are not shown again.')
    })
}
