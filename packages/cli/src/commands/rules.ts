/** The commands for access rules: `rules import`, `rules add`, `rules list`, `rules delete`. */

import { type AccessRule, accessRule, ruleKind, ruleMode, ruleType } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { type Defaults, validateRow } from '../import/validate-row.ts'
import { describe } from '../output.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'
import { fetchList, listFlags, noContent, printList, withLimit } from './lists.ts'
import { addRuleImport } from './rule-import.ts'
import { describeApplied, waitOf, withWait } from './wait.ts'

type Open = (command: Command) => Session

const scopeFlags = z.object({ product: z.string().optional(), license: z.string().optional() })
const addFlags = scopeFlags.extend({
  kind: ruleKind,
  type: ruleType,
  note: z.string().optional(),
  expires: z.string().optional(),
  allowSuspendedOrExpired: z.boolean().optional(),
  restriction: z.boolean().optional(),
  monitor: z.boolean().optional(),
})
const filterFlags = listFlags.extend({
  ...scopeFlags.shape,
  kind: ruleKind.optional(),
  mode: ruleMode.optional(),
  type: ruleType.optional(),
  value: z.string().optional(),
  set: z.string().optional(),
})

export function addRuleCommands(parent: Command, open: Open): void {
  const group = parent.command('rules').description('access rules: blacklists, exclusions and restrictions')
  addRuleImport(group, open)
  addAdd(group, open)
  addList(group, open)
  withWait(group.command('delete').description('delete access rules'))
    .argument('<id...>', 'the ids of the rules')
    .action(async (ids: string[], flags: unknown, command: Command) => {
      const { api, output } = open(command)
      let appliedBy: string | null = null
      for (const id of ids) {
        const path = `/access-rules/${encodeURIComponent(id)}`
        appliedBy = (await api.call({ method: 'DELETE', path, ...waitOf(flags) }, noContent)).appliedBy
      }
      const text = `Deleted ${ids.length} ${ids.length === 1 ? 'rule' : 'rules'}.`
      output.result({ deleted: ids, appliedBy }, withApplied(text, appliedBy))
    })
}

function addAdd(group: Command, open: Open): void {
  withWait(group.command('add').description('add an access rule'))
    .argument('<value>', 'an address or network, a machine id, a country code or the id of a customer')
    .addOption(new Option('--kind <kind>', 'the kind of the rule').choices(ruleKind.options).default('BLACKLIST'))
    .addOption(new Option('--type <type>', 'the type of the value').choices(ruleType.options).default('IP'))
    .addOption(new Option('--restriction', 'short for --kind RESTRICTION: only these').conflicts('kind'))
    .option('--monitor', 'count what the rule matches without enforcing it')
    .option('--product <id>', 'only for this product (default: the whole organization)')
    .addOption(new Option('--license <id>', 'only for this license').conflicts('product'))
    .option('--note <text>', 'a note')
    .option('--expires <when>', 'when it stops matching: a date, or 30d, 12h, 1y from now; default never')
    .option('--allow-suspended-or-expired', 'let suspended and expired licenses through; only with EXCLUSION')
    .action(async (value: string, given: unknown, command: Command) => {
      const { api, output, context } = open(command)
      const { product, license, expires, restriction, monitor, type, ...fields } = addFlags.parse(given)
      const kind = restriction === true ? 'RESTRICTION' : fields.kind
      const expiresAt = expires === undefined ? {} : { expiresAt: parseMoment(expires, context.nowMs()) }
      const defaults: Defaults = { kind, type, ...scopeOf({ product, license }) }
      const mode = monitor === true ? { mode: 'MONITOR' } : {}
      const row = { where: 'rule', fields: { value, ...fields, kind, ...mode, ...expiresAt } }
      const validated = validateRow(row, defaults)
      if ('problem' in validated) throw new Failure(EXIT.usage, validated.problem)
      const call = { method: 'POST', path: '/access-rules', body: validated.rule, ...waitOf(given) } as const
      const { data, appliedBy } = await api.call(call, accessRule)
      output.result({ ...data, appliedBy }, withApplied(describeRule(data), appliedBy))
    })
}

function addList(group: Command, open: Open): void {
  withLimit(group.command('list').description('list access rules, newest first'))
    .addOption(new Option('--kind <kind>', 'only this kind').choices(ruleKind.options))
    .addOption(new Option('--mode <mode>', 'only this mode').choices(ruleMode.options))
    .addOption(new Option('--type <type>', 'only this type').choices(ruleType.options))
    .option('--product <id>', 'only rules of this product')
    .addOption(new Option('--license <id>', 'only rules of this license').conflicts('product'))
    .option('--value <value>', 'only rules with exactly this value')
    .option('--set <name>', 'only rules of this set')
    .action(async (flags: unknown, command: Command) => {
      const session = open(command)
      const { limit, product, license, ...query } = filterFlags.parse(flags)
      const scope = product === undefined && license === undefined ? {} : scopeOf({ product, license })
      const list = await fetchList(session.api, '/access-rules', accessRule, limit, { ...query, ...scope })
      const heading = ['ID', 'KIND', 'MODE', 'TYPE', 'VALUE', 'SCOPE', 'MATCHES', 'EXPIRES', 'NOTE']
      printList(session, list, heading, (one) => [
        one.id,
        one.kind,
        one.mode,
        one.type,
        one.value,
        describeScope(one),
        String(one.matchCount),
        one.expiresAt ?? 'never',
        one.note ?? '',
      ])
    })
}

function scopeOf({ product, license }: z.infer<typeof scopeFlags>): Pick<Defaults, 'scope' | 'scopeId'> {
  if (product !== undefined) return { scope: 'PRODUCT', scopeId: product }
  return license === undefined ? { scope: 'ORGANIZATION' } : { scope: 'LICENSE', scopeId: license }
}

function describeRule(rule: AccessRule): string {
  const { id, kind, mode, type, value, note, expiresAt } = rule
  return describe({ id, kind, mode, type, value, scope: describeScope(rule), expires: expiresAt ?? 'never', note })
}

function describeScope({ scope, scopeId }: AccessRule): string {
  return scopeId === null ? 'organization' : `${scope.toLowerCase()} ${scopeId}`
}

function withApplied(text: string, appliedBy: string | null): string {
  const applied = describeApplied(appliedBy)
  return applied === null ? text : `${text}\n\n${applied}`
}
