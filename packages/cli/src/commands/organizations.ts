/**
 * The commands of the operator for organizations (docs/api.md#m12, docs/api.md#m13, docs/api.md#m14). Only the command that
 * creates a secret shows it.
 */

import { createOrganization, type OrganizationDetails, organizations, plan, quotaName } from '@keyward/contract'
import { auditLog } from '@keyward/contract/management/audit'
import { oneLine } from '@keyward/contract/text'
import { Argument, Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { describe, table } from '../output.ts'
import type { Session } from '../session.ts'
import { expiryOf, printSecret, withExpiry } from './credential-options.ts'
import { addList, listFlags, printList, readList, withLimit } from './lists.ts'
import { versionOf, withVersion } from './version.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const auditFlags = listFlags.extend({ org: z.string().optional() })

export function addOrganizationCommands(parent: CliCommand): void {
  const org = parent.command('org').description('organizations of vendors; requires the operator token')
  addCreate(org)
  addReads(org)
  addPlan(org)
  addQuota(org)
  addSignatures(org)
  addSuspension(org)
  addRecovery(org)
}

function addCreate(org: CliCommand): void {
  const create = org.command('create')
  withWait(create.description('create an organization and show its first management token and API key once'))
    .argument('<name>', 'the name of the vendor')
    .addOption(new Option('--plan <plan>', 'the plan').choices(plan.options).default('FREE'))
    .run(async (session, flags, name: string) => {
      const parsed = createOrganization.safeParse({ name, ...z.object({ plan }).parse(flags) })
      if (!parsed.success)
        throw new Failure(EXIT.usage, `${JSON.stringify(name)} is not a valid name of an organization`, {
          details: parsed.error.issues.map((issue) => issue.message),
        })
      const created = await session.api.call(organizations.createOrganization, { body: parsed.data }, waitOf(flags))
      const { id, managementToken = null, apiKey = null, ...data } = created.data
      const text = describe({ id, name, plan: data.plan, 'management token': managementToken, 'API key': apiKey })
      printChange(session, created, text)
      session.output.note('\nStore both secrets now. They are not shown again.')
    })
}

function addReads(org: CliCommand): void {
  addList(org, organizations.listOrganizations, 'organizations', (one) => ({
    ID: one.id,
    NAME: one.name,
    PLAN: one.plan,
    CREATED: one.createdAt,
  }))
  org
    .command('show')
    .description('show an organization with its quotas')
    .argument('<id>', 'the id of the organization')
    .run(async (session, _flags, id: string) => {
      const { data } = await session.api.call(organizations.readOrganization, { params: { id } })
      printDetails(session, data)
    })
  withLimit(org.command('audit-log').description('list the changes by the operator, newest first'))
    .option('--org <id>', 'only changes of this organization, which may be deleted')
    .run(async (session, flags) => {
      const { limit, org: organizationId } = auditFlags.parse(flags)
      const list = await readList(session.api, auditLog.listOperatorAuditLog, { query: { organizationId } }, limit)
      printList(session, list, (one) => ({
        AT: one.at,
        ACTION: one.action,
        ORGANIZATION: one.organizationId ?? '',
        CHANGES: JSON.stringify(one.changes ?? {}),
      }))
    })
}

function addPlan(org: CliCommand): void {
  withVersion(org.command('plan'))
    .description('change the plan of an organization; existing rules stay in force')
    .argument('<id>', 'the id of the organization')
    .addArgument(new Argument('<plan>', 'the new plan').choices(plan.options))
    .run(async (session, flags, id: string, newPlan: string) => {
      const input = { params: { id }, body: { plan: plan.parse(newPlan) } }
      printDetails(session, (await session.api.call(organizations.updateOrganization, input, versionOf(flags))).data)
    })
}

function addQuota(org: CliCommand): void {
  withVersion(org.command('quota'))
    .description('change the quotas of an organization')
    .argument('<id>', 'the id of the organization')
    .argument('<limits...>', 'the new limits, such as licenses=2000000 or licenses=default')
    .run(async (session, flags, id: string, ...limits: string[]) => {
      const input = { params: { id }, body: { quotas: Object.fromEntries(limits.map(parseLimit)) } }
      printDetails(session, (await session.api.call(organizations.updateOrganization, input, versionOf(flags))).data)
    })
}

function addSignatures(org: CliCommand): void {
  org
    .command('signatures')
    .description(
      'switch signed responses of an organization on or off; apps that require them then use their offline files',
    )
    .argument('<id>', 'the id of the organization')
    .addArgument(new Argument('<state>', 'whether validators sign responses').choices(['on', 'off']))
    .run(async (session, _flags, id: string, state: string) => {
      const input = { params: { id }, body: { signsAnswers: state === 'on' } }
      printDetails(session, (await session.api.call(organizations.updateOrganization, input)).data)
    })
}

function addSuspension(org: CliCommand): void {
  const { suspendOrganization, reinstateOrganization } = organizations
  for (const [name, done, operation, description] of [
    [
      'suspend',
      'Suspended',
      suspendOrganization,
      'suspend the access of an organization to the management API; checks continue',
    ],
    ['reinstate', 'Reinstated', reinstateOrganization, 'end the suspension of an organization'],
  ] as const)
    org
      .command(name)
      .description(description)
      .argument('<id>', 'the id of the organization')
      .run(async ({ api, output }, _flags, id: string) => {
        const { data } = await api.call(operation, { params: { id } })
        output.result(data, `${done} ${oneLine(data.name)}.`)
      })
}

function addRecovery(org: CliCommand): void {
  const recovery = org.command('recovery-token')
  withExpiry(
    recovery.description('create a management token for an organization that has lost its tokens, and show it once'),
  )
    .argument('<id>', 'the id of the organization')
    .option('--name <name>', 'the name of the token')
    .run(async (session, flags, id: string) => {
      const { name } = z.object({ name: z.string().optional() }).parse(flags)
      const body = { name, ...expiryOf(flags, session) }
      const created = await session.api.call(organizations.createRecoveryToken, { params: { id }, body })
      const { secret = null, ...data } = created.data
      printSecret(session, created, describe({ id: data.id, name: data.name, 'management token': secret }))
    })
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
  const { id, name, plan: itsPlan, createdAt, suspendedAt, signsAnswers, quotas } = details
  const rows = Object.entries(quotas).map(([quota, { used, limit }]) => [quota, String(used ?? ''), String(limit)])
  const head = describe({
    id,
    name,
    plan: itsPlan,
    created: createdAt,
    suspended: suspendedAt ?? 'no',
    'signs responses': signsAnswers ? 'yes' : 'no',
  })
  output.result(details, `${head}\n\n${table(['QUOTA', 'USED', 'LIMIT'], rows)}`)
}
