/**
 * The commands of the operator for organizations (docs/api.md#m12, docs/api.md#m13, docs/api.md#m14). Only the command that
 * creates a secret shows it.
 */

import {
  createdOrganization,
  createdToken,
  createOrganization,
  organization,
  type OrganizationDetails,
  organizationDetails,
  plan,
  quotaName,
} from '@keyward/contract'
import { operatorAuditEntry } from '@keyward/contract/management/audit'
import { Argument, type Command, Option } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { describe, table } from '../output.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { fetchList, listFlags, printList, withLimit } from './lists.ts'

type Open = (command: Command) => Session

const recoveryFlags = z.object({ name: z.string().optional(), expires: z.string().optional() })
const auditFlags = listFlags.extend({ org: z.string().optional() })

export function addOrganizationCommands(parent: Command, open: Open): void {
  const org = parent.command('org').description('organizations of vendors; requires the operator token')
  addCreate(org, open)
  addReads(org, open)
  addPlan(org, open)
  addQuota(org, open)
  addSuspension(org, open)
  addRecovery(org, open)
}

function addCreate(org: Command, open: Open): void {
  org
    .command('create')
    .description('create an organization and show its first management token and API key once')
    .argument('<name>', 'the name of the vendor')
    .addOption(new Option('--plan <plan>', 'the plan').choices(plan.options).default('FREE'))
    .action(async (name: string, flags: unknown, command: Command) => {
      const { api, output } = open(command)
      const parsed = createOrganization.safeParse({ name, ...z.object({ plan }).parse(flags) })
      if (!parsed.success)
        throw new Failure(EXIT.usage, `${JSON.stringify(name)} is not a valid name of an organization`, {
          details: parsed.error.issues.map((issue) => issue.message),
        })
      const call = { method: 'POST', path: '/organizations', body: parsed.data, as: 'operator' } as const
      const { data } = await api.call(call, createdOrganization)
      const { id, managementToken = null, apiKey = null } = data
      output.result(
        data,
        describe({ id, name, plan: data.plan, 'management token': managementToken, 'API key': apiKey }),
      )
      output.note('\nStore both secrets now. They are not shown again.')
    })
}

function addReads(org: Command, open: Open): void {
  withLimit(org.command('list').description('list organizations, newest first')).action(
    async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit } = listFlags.parse(flags)
      const list = await fetchList(session.api, '/organizations', organization, limit, {}, 'operator')
      printList(session, list, ['ID', 'NAME', 'PLAN', 'CREATED'], (one) => [one.id, one.name, one.plan, one.createdAt])
    },
  )
  org
    .command('show')
    .description('show an organization with its quotas')
    .argument('<id>', 'the id of the organization')
    .action(async (id: string, _flags: unknown, command: Command) => {
      const session = open(command)
      const call = { method: 'GET', path: pathOf(id), as: 'operator' } as const
      printDetails(session, (await session.api.call(call, organizationDetails)).data)
    })
  withLimit(org.command('audit-log').description('list the changes by the operator, newest first'))
    .option('--org <id>', 'only changes of this organization, which may be deleted')
    .action(async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, org: organizationId } = auditFlags.parse(flags)
      const filter = { organizationId }
      const list = await fetchList(session.api, '/operator/audit-log', operatorAuditEntry, limit, filter, 'operator')
      printList(session, list, ['AT', 'ACTION', 'ORGANIZATION', 'CHANGES'], (one) => [
        one.at,
        one.action,
        one.organizationId ?? '',
        JSON.stringify(one.changes ?? {}),
      ])
    })
}

function addPlan(org: Command, open: Open): void {
  org
    .command('plan')
    .description('change the plan of an organization; existing rules stay in force')
    .argument('<id>', 'the id of the organization')
    .addArgument(new Argument('<plan>', 'the new plan').choices(plan.options))
    .action(async (id: string, newPlan: string, _flags: unknown, command: Command) => {
      const session = open(command)
      const call = { method: 'PATCH', path: pathOf(id), body: { plan: newPlan }, as: 'operator' } as const
      printDetails(session, (await session.api.call(call, organizationDetails)).data)
    })
}

function addQuota(org: Command, open: Open): void {
  org
    .command('quota')
    .description('change the quotas of an organization')
    .argument('<id>', 'the id of the organization')
    .argument('<limits...>', 'the new limits, such as licenses=2000000 or licenses=default')
    .action(async (id: string, limits: readonly string[], _flags: unknown, command: Command) => {
      const session = open(command)
      const body = { quotas: Object.fromEntries(limits.map(parseLimit)) }
      const call = { method: 'PATCH', path: pathOf(id), body, as: 'operator' } as const
      printDetails(session, (await session.api.call(call, organizationDetails)).data)
    })
}

function addSuspension(org: Command, open: Open): void {
  const addAction = (name: 'suspend' | 'reinstate', description: string): void => {
    org
      .command(name)
      .description(description)
      .argument('<id>', 'the id of the organization')
      .action(async (id: string, _flags: unknown, command: Command) => {
        const { api, output } = open(command)
        const call = { method: 'POST', path: `${pathOf(id)}/${name}`, as: 'operator' } as const
        const { data } = await api.call(call, organizationDetails)
        output.result(data, `${name === 'suspend' ? 'Suspended' : 'Reinstated'} ${data.name}.`)
      })
  }
  addAction('suspend', 'suspend the access of an organization to the management API; checks continue')
  addAction('reinstate', 'end the suspension of an organization')
}

function addRecovery(org: Command, open: Open): void {
  org
    .command('recovery-token')
    .description('create a management token for an organization that has lost its tokens, and show it once')
    .argument('<id>', 'the id of the organization')
    .option('--name <name>', 'the name of the token')
    .option('--expires <when>', 'the expiry: a date, or 30d, 12h, 1y from now (default: never)')
    .action(async (id: string, flags: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const { name, expires } = recoveryFlags.parse(flags)
      const body = {
        ...(name !== undefined && { name }),
        ...(expires !== undefined && { expiresAt: parseMoment(expires, context.nowMs()) }),
      }
      const call = { method: 'POST', path: `${pathOf(id)}/recovery-token`, body, as: 'operator' } as const
      const { data } = await api.call(call, createdToken)
      output.result(data, describe({ id: data.id, name: data.name, 'management token': data.secret ?? null }))
      output.note('\nStore the secret now. It is not shown again.')
    })
}

function pathOf(id: string): string {
  return `/organizations/${encodeURIComponent(id)}`
}

/** Parses a limit such as `licenses=2000000`. Throws Failure for any other form. */
function parseLimit(text: string): [string, number | null] {
  const [name = '', limit = '', ...rest] = text.split('=')
  const isLimit = limit === 'default' || /^\d{1,10}$/.test(limit)
  if (rest.length > 0 || !isLimit || !quotaName.safeParse(name).success)
    throw new Failure(EXIT.usage, `${JSON.stringify(text)} is not the limit of a quota`, {
      details: [`Write <name>=<number> or <name>=default. Names: ${quotaName.options.join(', ')}.`],
    })
  return [name, limit === 'default' ? null : Number(limit)]
}

function printDetails({ output }: Session, details: OrganizationDetails): void {
  const { id, name, plan: itsPlan, createdAt, suspendedAt, quotas } = details
  const rows = Object.entries(quotas).map(([quota, { used, limit }]) => [quota, String(used ?? ''), String(limit)])
  const head = describe({ id, name, plan: itsPlan, created: createdAt, suspended: suspendedAt ?? 'no' })
  output.result(details, `${head}\n\n${table(['QUOTA', 'USED', 'LIMIT'], rows)}`)
}
