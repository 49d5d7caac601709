import { access } from 'node:fs/promises'
import { resolve } from 'node:path'

import { accessRuleSets, MAX_SET_RULES } from '@keyward/contract'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { formatOf } from '../import/rows.ts'
import { coveredRows, type LocatedRule } from '../import/send.ts'
import type { Session } from '../session.ts'
import { addList } from './lists.ts'
import { FILE, noteSkipped, openRows, rowFlags, surveyRows, withRowFlags } from './rule-import.ts'
import { defaultsOf } from './rule-options.ts'
import { printChange, waitOf, withWait } from './wait.ts'

const putFlags = rowFlags.extend({
  ifMatch: z.uuid().optional(),
  ifNew: z.boolean().optional(),
  allowEmpty: z.boolean().optional(),
})

export function addSetCommands(parent: CliCommand): void {
  const group = parent.command('sets').description('sets of access rules: lists that are replaced as a whole')
  addList(group, accessRuleSets.listAccessRuleSets, 'sets', (set) => ({
    NAME: set.name,
    RULES: String(set.rules),
    CHANGED: set.updatedAt,
    VERSION: set.version,
  }))
  const put = group.command('put').description('replace the rules of a set by the rules of a file, at most 20,000')
  withWait(withRowFlags(put.argument('<set>', 'the name of the set').argument('<file>', FILE)))
    .option('--if-match <version>', 'fail if the set has another version')
    .option('--if-new', 'fail if the set exists')
    .option('--allow-empty', 'delete all rules of the set if the file contains none')
    .run((session, flags, name: string, file: string) => putSet(session, name, file, flags))
  withWait(group.command('delete').description('delete a set and its rules'))
    .argument('<set>', 'the name of the set')
    .run(async (session, flags, name: string) => {
      const input = { params: { set: name } }
      const { appliedBy } = await session.api.call(accessRuleSets.deleteAccessRuleSet, input, waitOf(flags))
      printChange(session, { data: { deleted: name }, appliedBy }, `Deleted the set ${name}.`)
    })
}

async function putSet(session: Session, name: string, file: string, given: unknown): Promise<void> {
  const { api, context } = session
  const { ifMatch, ifNew, allowEmpty, ...flags } = putFlags.parse(given)
  const path = resolve(context.folder, file)
  await access(path).catch(() => {
    throw new Failure(EXIT.usage, `The file ${path} cannot be read`)
  })
  const rows = () => openRows(path, flags.format ?? formatOf(path), defaultsOf(flags, context.nowMs()))
  const survey = await surveyRows(rows())
  if (survey.problems.length > 0)
    throw new Failure(EXIT.usage, `${survey.invalid} of ${survey.rows} rows are invalid. Nothing was sent`, {
      details: survey.problems,
    })
  if (survey.rows > MAX_SET_RULES)
    throw new Failure(EXIT.usage, `A set has at most ${MAX_SET_RULES} rules; ${path} has ${survey.rows}`)
  if (survey.rows === 0 && allowEmpty !== true)
    throw new Failure(
      EXIT.usage,
      `${path} contains no rules, so ${await describeLoss(session, name)} would be deleted. Nothing was sent. To delete them, use --allow-empty`,
    )
  const located: LocatedRule[] = []
  for await (const row of rows()) if ('rule' in row) located.push(row)
  const rules = located.map(({ rule }) => rule)
  const condition = ifNew === true ? { ifMatch: null } : ifMatch === undefined ? {} : { ifMatch }
  const input = { params: { set: name }, body: { rules, ...condition, ...(allowEmpty && { allowEmpty }) } }
  const replaced = await api.call(accessRuleSets.replaceAccessRuleSet, input, waitOf(given))
  const { created, updated, unchanged, removed, skipped, version } = replaced.data
  const skippedRows = coveredRows(replaced.data.skippedRows, located)
  const text =
    `${created} rules created, ${updated} updated, ${unchanged} unchanged, ${removed} removed, ${skipped} skipped.` +
    `\nThe version of ${name} is ${version}.`
  printChange(session, { ...replaced, data: { ...replaced.data, skippedRows } }, text)
  noteSkipped(session, skipped, skippedRows)
}

/** Returns the number of rules that an empty list would delete, in words. */
async function describeLoss({ api }: Session, name: string): Promise<string> {
  try {
    const { data } = await api.call(accessRuleSets.readAccessRuleSet, { params: { set: name } })
    return `all ${data.rules} rules of the set ${name}`
  } catch (error) {
    if (error instanceof Failure && error.code === 'NOT_FOUND')
      return `all rules of the set ${name}, which does not exist,`
    throw error
  }
}
