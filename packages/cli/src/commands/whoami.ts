import { organizations } from '@keyward/contract'

import type { CliCommand } from '../command.ts'
import { describe, table } from '../output.ts'

export function addWhoamiCommand(parent: CliCommand): void {
  parent
    .command('whoami')
    .description('show the organization of the token, its plan and its quotas')
    .run(async ({ api, output }) => {
      const { data } = await api.call(organizations.readOwnOrganization, {})
      const { id, name, plan, usage, quotas } = data
      const { used, limit } = usage.rules
      const head = describe({ id, name, plan, 'unexpired rules': `${used} of ${limit ?? 'any number'}` })
      const rows = Object.entries(quotas).map(([quota, use]) => [quota, String(use.used ?? '–'), String(use.limit)])
      output.result(data, `${head}\n\n${table(['QUOTA', 'USED', 'LIMIT'], rows)}`)
    })
}
