/** The commands for access rules: `rules add`, `list`, `set-mode`, `delete`, `import` and `export`. */

import {
  type AccessRule,
  accessRules,
  type LastDay,
  MAX_IMPORT_ROWS,
  ruleKind,
  ruleMode,
  ruleType,
} from '@keyward/contract'
import { Argument, Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { validateRow } from '../import/validate-row.ts'
import { describe } from '../output.ts'
import { saveExport } from './export.ts'
import { listFlags, printList, readList, withLimit } from './lists.ts'
import { addRuleImport } from './rule-import.ts'
import { defaultsOf, ruleFlags, scopeFlags, scopeOf, withRuleFlags } from './rule-options.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const addFlags = ruleFlags.extend({
  allowSuspendedOrExpired: z.boolean().optional(),
  restriction: z.boolean().optional(),
})
const filterFlags = z.object({
  ...scopeFlags.shape,
  kind: ruleKind.optional(),
  mode: ruleMode.optional(),
  type: ruleType.optional(),
  value: z.string().optional(),
  matches: z.string().optional(),
  set: z.string().optional(),
})
const listedFlags = filterFlags
  .extend(listFlags.shape)
  .extend({ sort: z.string().optional(), order: z.string().optional(), appliesTo: z.string().optional() })

export function addRuleCommands(parent: CliCommand): void {
  const group = parent.command('rules').description('access rules: blacklists, exclusions and restrictions')
  addRuleImport(group)
  addAdd(group)
  addList(group)
  addSetMode(group)
  withWait(group.command('delete').description('delete access rules'))
    .argument('<id...>', 'the ids of the rules')
    .run(async (session, flags, ...ids: string[]) => {
      let appliedBy: string | null = null
      let missing = 0
      for (let from = 0; from < ids.length; from += MAX_IMPORT_ROWS) {
        const body = { ids: ids.slice(from, from + MAX_IMPORT_ROWS) }
        const response = await session.api.call(accessRules.deleteAccessRules, { body }, waitOf(flags))
        appliedBy = response.appliedBy
        missing += response.data.missing
      }
      if (missing > 0)
        throw new Failure(
          EXIT.apiError,
          `${missing} of ${ids.length} ids have no rule. The rules of the other ids were deleted`,
        )
      const text = `Deleted ${ids.length} ${ids.length === 1 ? 'rule' : 'rules'}.`
      printChange(session, { data: { deleted: ids }, appliedBy }, text)
    })
  addExport(group)
}

function addExport(group: CliCommand): void {
  withFilters(group.command('export').description('write unexpired rules to a file in the format of an import'))
    .argument('<file>', 'the file to write, with the extension .csv or .json')
    .run(async (session, flags, file: string) => {
      const query = { ...queryOf(filterFlags.parse(flags)), expired: 'false' }
      await saveExport(session, accessRules.exportAccessRules, query, { file, formats: ['csv', 'json'] })
    })
}

function addAdd(group: CliCommand): void {
  withWait(withRuleFlags(group.command('add').description('add an access rule'), 'the rule'))
    .argument('<value>', 'an address or network, a machine id, a country code or the id of a customer')
    .addOption(new Option('--restriction', 'short form of --kind RESTRICTION').conflicts('kind'))
    .option('--allow-suspended-or-expired', 'also allow suspended and expired licenses (only with EXCLUSION)')
    .run(async (session, given, value: string) => {
      const { restriction, allowSuspendedOrExpired, ...flags } = addFlags.parse(given)
      if (restriction === true) flags.kind = 'RESTRICTION'
      const fields = { value, ...(allowSuspendedOrExpired !== undefined && { allowSuspendedOrExpired }) }
      const validated = validateRow({ where: 'rule', fields }, defaultsOf(flags, session.context.nowMs()))
      if ('problem' in validated) throw new Failure(EXIT.usage, validated.problem)
      const added = await session.api.call(accessRules.createAccessRule, { body: validated.rule }, waitOf(given))
      printChange(session, added, describeRule(added.data))
    })
}

function addList(group: CliCommand): void {
  withFilters(withLimit(group.command('list').description('list access rules, newest first')))
    .addOption(
      new Option('--sort <value>', 'the field to sort by').choices(['createdAt', 'matchCount', 'lastMatchedAt']),
    )
    .addOption(new Option('--order <order>', 'descending or ascending').choices(['desc', 'asc']))
    .option('--applies-to <license id>', 'only rules that can decide a check of this license')
    .run(async (session, flags) => {
      const { limit, appliesTo: licenseId, ...filter } = listedFlags.parse(flags)
      const query = { ...queryOf(filter), licenseId }
      const list = await readList(session.api, accessRules.listAccessRules, { query }, limit)
      printList(session, list, (one) => ({
        ID: one.id,
        KIND: one.kind,
        MODE: one.mode,
        TYPE: one.type,
        VALUE: one.value,
        SCOPE: describeScope(one),
        MATCHES: String(one.matchCount),
        EXPIRES: one.expiresAt ?? 'never',
        NOTE: one.note ?? '',
      }))
    })
}

function addSetMode(group: CliCommand): void {
  const description =
    'let access rules decide checks, or only count their matches: all of these rules in one step, or none'
  withWait(group.command('set-mode').description(description))
    .addArgument(new Argument('<mode>', 'the mode of the rules').choices(ruleMode.options))
    .argument('[id...]', 'the ids of the rules, at most 1,000')
    .option('--set <name>', 'all rules of this set, instead of ids')
    .option('--dry-run', 'change nothing, and estimate how many checks of the last day would have been rejected')
    .run(async (session, flags, mode: string, ...ids: string[]) => {
      const { set, dryRun } = z.object({ set: z.string().optional(), dryRun: z.literal(true).optional() }).parse(flags)
      if ((set === undefined) === (ids.length === 0)) throw new Failure(EXIT.usage, 'Name either rules or a --set')
      const body = { mode: ruleMode.parse(mode), ...(set === undefined ? { ids } : { set }), dryRun }
      const changed = await session.api.call(accessRules.setAccessRuleMode, { body }, waitOf(flags))
      const { updated, unchanged, lastDay } = changed.data
      if (dryRun === undefined)
        return printChange(session, changed, `${updated} rules changed to ${mode}, ${unchanged} unchanged.`)
      const counts = `${updated} rules would change to ${mode}, ${unchanged} would not. Nothing was changed.`
      session.output.result(changed.data, lastDay ? `${counts}\n${describeLastDay(lastDay)}` : counts)
    })
}

function describeLastDay({ from, checks, rejected }: LastDay): string {
  return `Of ${checks} checks since ${from}, they would have rejected about ${rejected}.`
}

function withFilters(command: CliCommand): CliCommand {
  return command
    .addOption(new Option('--kind <kind>', 'only this kind').choices(ruleKind.options))
    .addOption(new Option('--mode <mode>', 'only this mode').choices(ruleMode.options))
    .addOption(new Option('--type <type>', 'only this type').choices(ruleType.options))
    .option('--product <id>', 'only rules of this product')
    .addOption(new Option('--license <id>', 'only rules of this license').conflicts('product'))
    .option('--value <value>', 'only rules with exactly this value')
    .option('--matches <value>', 'only rules that would match this address, range, machine id or country')
    .option('--set <name>', 'only rules of this set')
}

/** Returns the query parameters of the given filters. */
function queryOf<Filter extends z.infer<typeof filterFlags>>({ product, license, ...filter }: Filter) {
  return { ...filter, ...(product === undefined && license === undefined ? {} : scopeOf({ product, license })) }
}

function describeRule(rule: AccessRule): string {
  const { id, kind, mode, type, value, note, expiresAt } = rule
  return describe({ id, kind, mode, type, value, scope: describeScope(rule), expires: expiresAt ?? 'never', note })
}

function describeScope({ scope, scopeId }: AccessRule): string {
  return scopeId === null ? 'organization' : `${scope.toLowerCase()} ${scopeId}`
}
