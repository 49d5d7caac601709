/** `rules import`: validates a list of any length, then sends it in batches. A later run resumes an interrupted import. */

import { access } from 'node:fs/promises'
import { resolve } from 'node:path'

import { organizations } from '@keyward/contract'
import { Option } from 'commander'
import { z } from 'zod'

import type { CliCommand } from '../command.ts'
import { EXIT, Failure } from '../failure.ts'
import { csvRows } from '../import/csv-rows.ts'
import { jsonLineRows, jsonRows } from '../import/json-rows.ts'
import { freshProgress, openProgress, type ProgressState } from '../import/progress.ts'
import { type Format, formatOf, FORMATS, type Rows } from '../import/rows.ts'
import { type CoveredRow, type LocatedRule, sendAll } from '../import/send.ts'
import { textRows } from '../import/text-rows.ts'
import { type Defaults, validateRow } from '../import/validate-row.ts'
import type { Session } from '../session.ts'
import { defaultsOf, ruleFlags, withRuleFlags } from './rule-options.ts'

/** The maximum number of invalid rows, and of skipped rows, that a command prints. */
const MAX_ROWS_SHOWN = 20

/** The flags for the format of a file and for the fields that its rows lack. */
export const rowFlags = ruleFlags.extend({ format: z.enum(FORMATS).optional() })

const flagsOf = rowFlags.extend({
  skipInvalid: z.boolean().default(false),
  dryRun: z.boolean().default(false),
  restart: z.boolean().default(false),
})
type Flags = z.infer<typeof flagsOf>

export const FILE = 'txt (one value in each line), csv (with a heading line), json or jsonl'

/** Adds the options of `rowFlags` to a command. */
export function withRowFlags(command: CliCommand): CliCommand {
  const format = new Option('--format <format>', 'the format of the file (default: by its extension)').choices(FORMATS)
  return withRuleFlags(command.addOption(format), 'rows without one')
}

/** Adds `import` to the group `rules`. */
export function addRuleImport(group: CliCommand): void {
  const importing = group.command('import').description('add a list of rules of any length; existing rules are skipped')
  withRowFlags(importing.argument('<file>', FILE))
    .option('--skip-invalid', 'skip invalid rows; without this option, an invalid row stops the import')
    .option('--dry-run', 'validate the file without sending it')
    .option('--restart', 'start from the beginning instead of resuming an interrupted import of the same file')
    .run((session, flags, file: string) => importRules(session, file, flagsOf.parse(flags)))
}

async function importRules(session: Session, file: string, flags: Flags): Promise<void> {
  const { api, output, context } = session
  const path = resolve(context.folder, file)
  await access(path).catch(() => {
    throw new Failure(EXIT.usage, `The file ${path} cannot be read`)
  })
  const format = flags.format ?? formatOf(path)
  const nowMs = context.nowMs()
  const survey = await surveyRows(openRows(path, format, defaultsOf(flags, nowMs)))
  if (survey.problems.length > 0 && !flags.skipInvalid)
    throw new Failure(
      EXIT.usage,
      `${survey.invalid} of ${survey.rows} rows are invalid. Nothing was sent. Correct them, or use --skip-invalid`,
      {
        details: survey.problems,
      },
    )
  const counts = { rows: survey.rows, invalid: survey.invalid }
  if (flags.dryRun) {
    output.result({ ...counts, dryRun: true }, `${survey.rows - survey.invalid} rules are valid. Nothing was sent.`)
    return
  }
  const organization = (await api.call(organizations.readOwnOrganization, {}, { retry: {} })).data
  const { expires, restart: _restart, dryRun: _dryRun, ...same } = flags
  const scope = { ...same, expires, url: api.baseUrl, organization: organization.id }
  const progress = await openProgress(context.home, path, scope)
  const start = flags.restart || progress.earlier === null ? freshProgress(nowMs) : progress.earlier
  const resumes = start === progress.earlier
  if (resumes)
    output.note(
      `Resuming after ${start.batches} batches of ${describeRun(start)}. Use --restart to start from the beginning.`,
    )
  const defaults = defaultsOf(flags, start.begunMs)
  if (resumes && defaults.expiresAt !== undefined && Date.parse(defaults.expiresAt) <= nowMs)
    throw new Failure(
      EXIT.usage,
      `--expires ${expires} of ${describeRun(start)} has passed. Use --restart to start from the beginning`,
    )
  const total = survey.rows - survey.invalid
  const sent = await sendAll(api, validRules(openRows(path, format, defaults)), progress, start, (state) =>
    output.progress(`${Math.min(state.batches * 1_000, total)} of ${total} rules sent, ${state.created} new`),
  )
  const { created, skipped, skippedRows } = sent
  output.result(
    { ...counts, created, skipped, skippedRows },
    `${created} rules added, ${skipped} already existed, ${survey.invalid} invalid rows skipped.`,
  )
  noteSkipped(session, skipped, skippedRows)
}

/** Prints the first skipped rows, each with the rule that makes it superfluous. */
export function noteSkipped({ output }: Session, count: number, rows: readonly CoveredRow[]): void {
  const shown = rows.slice(0, MAX_ROWS_SHOWN)
  if (shown.length === 0) return
  output.note('\nSkipped, because a rule does all that the row says:')
  for (const { where, ruleId } of shown) output.note(`  ${where}: ${ruleId}`)
  if (count > shown.length) output.note(`  … and ${count - shown.length} more`)
}

function describeRun({ begunMs }: ProgressState): string {
  return `the run that began at ${new Date(begunMs).toISOString()}`
}

type CheckedRow = LocatedRule | { problem: string }

/** Yields the rules of a file, and a problem for each invalid row. */
export async function* openRows(path: string, format: Format, defaults: Defaults): AsyncGenerator<CheckedRow> {
  for await (const row of readRows(path, format, defaults)) {
    const validated = validateRow(row, defaults)
    if ('problem' in validated) yield validated
    else yield { where: row.where, rule: validated.rule }
  }
}

function readRows(path: string, format: Format, defaults: Defaults): Rows {
  switch (format) {
    case 'txt':
      return textRows(path, defaults.type === 'HWID')
    case 'csv':
      return csvRows(path)
    case 'json':
      return jsonRows(path)
    case 'jsonl':
      return jsonLineRows(path)
    default:
      return format satisfies never
  }
}

async function* validRules(rows: AsyncIterable<CheckedRow>): AsyncGenerator<LocatedRule> {
  for await (const row of rows) if ('rule' in row) yield row
}

/** Counts all rows and collects the first problems. */
export async function surveyRows(
  checked: AsyncIterable<CheckedRow>,
): Promise<{ rows: number; invalid: number; problems: string[] }> {
  let rows = 0
  let invalid = 0
  const problems: string[] = []
  for await (const row of checked) {
    rows++
    if (!('problem' in row)) continue
    invalid++
    if (problems.length < MAX_ROWS_SHOWN) problems.push(row.problem)
  }
  if (invalid > problems.length) problems.push(`… and ${invalid - problems.length} more`)
  return { rows, invalid, problems }
}
