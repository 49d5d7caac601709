/** `rules import`: validates a list of any length, then sends it in batches. A later run resumes an interrupted one. */

import { access } from 'node:fs/promises'
import { resolve } from 'node:path'

import { ownOrganization, ruleKind, ruleType } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { csvRows } from '../import/csv-rows.ts'
import { jsonLineRows, jsonRows } from '../import/json-rows.ts'
import { freshProgress, openProgress, type ProgressState } from '../import/progress.ts'
import { type Format, formatOf, FORMATS, type Rows } from '../import/rows.ts'
import { type LocatedRule, sendAll } from '../import/send.ts'
import { textRows } from '../import/text-rows.ts'
import { type Defaults, validateRow } from '../import/validate-row.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'

const MAX_PROBLEMS_SHOWN = 20

/** The flags that choose the format of a file, and the fields that its rows leave out. */
export const rowFlags = z.object({
  format: z.enum(FORMATS).optional(),
  kind: ruleKind,
  type: ruleType,
  product: z.string().optional(),
  license: z.string().optional(),
  note: z.string().optional(),
  expires: z.string().optional(),
  monitor: z.boolean().optional(),
})
type RowFlags = z.infer<typeof rowFlags>

const flagsOf = rowFlags.extend({
  skipInvalid: z.boolean().default(false),
  dryRun: z.boolean().default(false),
  restart: z.boolean().default(false),
})
type Flags = z.infer<typeof flagsOf>

export const FILE = 'txt (a value a line), csv (with a heading line), json or jsonl'

/** Adds the options of `rowFlags` to a command. */
export function withRowFlags(command: Command): Command {
  return command
    .addOption(new Option('--format <format>', "format of the file (default: by the file's name)").choices(FORMATS))
    .addOption(
      new Option('--kind <kind>', 'kind of rows that have none').choices(ruleKind.options).default('BLACKLIST'),
    )
    .addOption(new Option('--type <type>', 'type of rows that have none').choices(ruleType.options).default('IP'))
    .option('--product <id>', 'product of rows that have no scope (default: the whole organization)')
    .addOption(new Option('--license <id>', 'license of rows that have no scope').conflicts('product'))
    .option('--note <text>', 'note of rows that have none')
    .option('--expires <when>', 'expiry of rows that have none: a date, or 30d, 12h, 1y from the start of the command')
    .option('--monitor', 'rows that have no mode count what they match without being enforced')
}

/** Adds the command to the group `rules`. */
export function addRuleImport(group: Command, open: (command: Command) => Session): void {
  const importing = group
    .command('import')
    .description('add a list of rules of any length; rules that exist are skipped')
  withRowFlags(importing.argument('<file>', FILE))
    .option('--skip-invalid', 'leave out invalid rows instead of sending nothing')
    .option('--dry-run', 'validate the file and send nothing')
    .option('--restart', 'start from the beginning instead of resuming an interrupted import of the same file')
    .action(async (file: string, given: unknown, command: Command) => {
      await importRules(open(command), file, flagsOf.parse(given))
    })
}

async function importRules(session: Session, file: string, flags: Flags): Promise<void> {
  const { api, output, context } = session
  const path = resolve(context.folder, file)
  await access(path).catch(() => {
    throw new Failure(EXIT.usage, `${path} cannot be read`)
  })
  const format = flags.format ?? formatOf(path)
  const nowMs = context.nowMs()
  const survey = await surveyRows(openRows(path, format, defaultsOf(flags, nowMs)))
  if (survey.problems.length > 0 && !flags.skipInvalid)
    throw new Failure(EXIT.usage, `${survey.invalid} of ${survey.rows} rows are invalid; nothing was sent`, {
      details: survey.problems,
    })
  const counts = { rows: survey.rows, invalid: survey.invalid }
  if (flags.dryRun) {
    output.result({ ...counts, dryRun: true }, `Nothing was sent; ${survey.rows - survey.invalid} rules are valid.`)
    return
  }
  const organization = (await api.call({ method: 'GET', path: '/organization', retry: {} }, ownOrganization)).data
  const { expires, restart: _restart, dryRun: _dryRun, ...same } = flags
  const scope = { ...same, expires, url: api.baseUrl, organization: organization.id }
  const progress = await openProgress(context.home, path, scope)
  const start = flags.restart || progress.earlier === null ? freshProgress(nowMs) : progress.earlier
  const resumes = start === progress.earlier
  if (resumes)
    output.note(
      `Resuming after ${start.batches} batches of ${describeRun(start)} (--restart starts from the beginning).`,
    )
  const defaults = defaultsOf(flags, start.begunMs)
  if (resumes && defaults.expiresAt !== undefined && Date.parse(defaults.expiresAt) <= nowMs)
    throw new Failure(
      EXIT.usage,
      `--expires ${expires} of ${describeRun(start)} has passed; --restart starts from the beginning`,
    )
  const total = survey.rows - survey.invalid
  const sent = await sendAll(api, validRules(openRows(path, format, defaults)), progress, start, (state) =>
    output.progress(`${Math.min(state.batches * 1_000, total)} of ${total} rules sent, ${state.created} new`),
  )
  const { created, skipped } = sent
  output.result(
    { ...counts, created, skipped },
    `${created} rules added, ${skipped} already existed, ${survey.invalid} rows left out.`,
  )
}

function describeRun({ begunMs }: ProgressState): string {
  return `the run that began at ${new Date(begunMs).toISOString()}`
}

/** Returns the fields of rows that leave them out. */
export function defaultsOf(flags: RowFlags, nowMs: number): Defaults {
  const { kind, type, note, expires, product, license, monitor } = flags
  return {
    kind,
    type,
    ...(product !== undefined
      ? { scope: 'PRODUCT', scopeId: product }
      : license !== undefined
        ? { scope: 'LICENSE', scopeId: license }
        : { scope: 'ORGANIZATION' }),
    ...(monitor === true ? { mode: 'MONITOR' as const } : {}),
    ...(note === undefined ? {} : { note }),
    ...(expires === undefined ? {} : { expiresAt: parseMoment(expires, nowMs) }),
  }
}

export type CheckedRow = LocatedRule | { problem: string }

/** Yields the rules of a file, and a problem for each row that is invalid. */
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
    if (problems.length < MAX_PROBLEMS_SHOWN) problems.push(row.problem)
  }
  if (invalid > problems.length) problems.push(`… and ${invalid - problems.length} more`)
  return { rows, invalid, problems }
}
