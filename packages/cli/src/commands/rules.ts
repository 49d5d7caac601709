/** `rules import`: a list of any length, surveyed first, then sent in batches that a later run can go on from. */
import { access } from 'node:fs/promises'
import { resolve } from 'node:path'

import { ownOrganization, ruleKind, ruleType } from '@keyward/contract'
import { type Command, Option } from 'commander'
import { z } from 'zod'

import { EXIT, Failure } from '../failure.ts'
import { csvRows } from '../import/csv-rows.ts'
import { jsonLineRows, jsonRows } from '../import/json-rows.ts'
import { type Defaults, judge } from '../import/judge.ts'
import { freshProgress, openProgress, type ProgressState } from '../import/progress.ts'
import { type Format, formatOf, FORMATS, type Rows } from '../import/rows.ts'
import { type PlacedRule, sendAll } from '../import/send.ts'
import { textRows } from '../import/text-rows.ts'
import type { Session } from '../session.ts'
import { parseMoment } from '../times.ts'

const MOST_SHOWN = 20

const flagsOf = z.object({
  format: z.enum(FORMATS).optional(),
  kind: ruleKind,
  type: ruleType,
  product: z.string().optional(),
  license: z.string().optional(),
  note: z.string().optional(),
  expires: z.string().optional(),
  skipInvalid: z.boolean().default(false),
  dryRun: z.boolean().default(false),
  restart: z.boolean().default(false),
})
type Flags = z.infer<typeof flagsOf>

export function addRuleCommands(parent: Command, open: (command: Command) => Session): void {
  const rules = parent.command('rules').description('access rules: blacklists and exclusions')
  rules
    .command('import')
    .description('add a list of rules of any length; rules that exist are skipped')
    .argument('<file>', 'txt (a value a line), csv (with a heading line), json or jsonl')
    .addOption(new Option('--format <format>', "default by the file's name").choices(FORMATS))
    .addOption(new Option('--kind <kind>', 'where a row has none').choices(ruleKind.options).default('BLACKLIST'))
    .addOption(new Option('--type <type>', 'where a row has none').choices(ruleType.options).default('IP'))
    .option('--product <id>', 'for this product, where a row has no scope; default the whole organization')
    .addOption(new Option('--license <id>', 'for this license, where a row has no scope').conflicts('product'))
    .option('--note <text>', 'where a row has none')
    .option('--expires <when>', 'where a row has none: a date, or 30d, 12h, 1y from when the import began')
    .option('--skip-invalid', 'leave bad rows out instead of stopping before anything is sent')
    .option('--dry-run', 'read and judge everything, send nothing')
    .option('--restart', 'begin anew where an earlier run of the same file was stopped')
    .action(async (file: string, given: unknown, command: Command) => {
      await importRules(open(command), file, flagsOf.parse(given))
    })
}

async function importRules(session: Session, file: string, flags: Flags): Promise<void> {
  const { api, output, surroundings } = session
  const path = resolve(surroundings.folder, file)
  await access(path).catch(() => {
    throw new Failure(EXIT.usage, `${path} cannot be read`)
  })
  const format = flags.format ?? formatOf(path)
  const nowMs = surroundings.nowMs()
  const survey = await surveyRows(openRows(path, format, defaultsOf(flags, nowMs)))
  if (survey.problems.length > 0 && !flags.skipInvalid)
    throw new Failure(EXIT.usage, `${survey.invalid} of ${survey.rows} rows are not rules; nothing was sent`, {
      details: survey.problems,
    })
  const counts = { rows: survey.rows, invalid: survey.invalid }
  if (flags.dryRun) {
    output.result({ ...counts, dryRun: true }, `${survey.rows - survey.invalid} rules would be sent; nothing was.`)
    return
  }
  const organization = (await api.call({ method: 'GET', path: '/organization', retry: {} }, ownOrganization)).data
  const { expires, restart: _restart, dryRun: _dryRun, ...same } = flags
  const scope = { ...same, expires, url: api.baseUrl, organization: organization.id }
  const progress = await openProgress(surroundings.home, path, scope)
  const start = flags.restart || progress.earlier === null ? freshProgress(nowMs) : progress.earlier
  const goesOn = start === progress.earlier
  if (goesOn) output.note(`Going on after ${start.batches} batches of ${describeRun(start)} (--restart begins anew).`)
  const defaults = defaultsOf(flags, start.begunMs)
  if (goesOn && defaults.expiresAt !== undefined && Date.parse(defaults.expiresAt) <= nowMs)
    throw new Failure(EXIT.usage, `--expires ${expires} of ${describeRun(start)} has passed; --restart begins anew`)
  const total = survey.rows - survey.invalid
  const sent = await sendAll(api, validRules(openRows(path, format, defaults)), progress, start, (state) =>
    output.progress(`${Math.min(state.batches * 1_000, total)} of ${total} rules sent, ${state.created} new`),
  )
  const { created, skipped } = sent
  output.result(
    { ...counts, created, skipped },
    `${created} rules added, ${skipped} existed already, ${survey.invalid} rows left out.`,
  )
}

function describeRun({ begunMs }: ProgressState): string {
  return `the run that began at ${new Date(begunMs).toISOString()}`
}

function defaultsOf(flags: Flags, nowMs: number): Defaults {
  const { kind, type, note, expires, product, license } = flags
  return {
    kind,
    type,
    ...(product !== undefined
      ? { scope: 'PRODUCT', scopeId: product }
      : license !== undefined
        ? { scope: 'LICENSE', scopeId: license }
        : { scope: 'ORGANIZATION' }),
    ...(note === undefined ? {} : { note }),
    ...(expires === undefined ? {} : { expiresAt: parseMoment(expires, nowMs) }),
  }
}

type Judged = { placed: PlacedRule } | { problem: string }

async function* openRows(path: string, format: Format, defaults: Defaults): AsyncGenerator<Judged> {
  for await (const row of readRows(path, format, defaults)) {
    const judgement = judge(row, defaults)
    if ('problem' in judgement) yield judgement
    else yield { placed: { where: row.where, rule: judgement.rule } }
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

async function* validRules(judged: AsyncIterable<Judged>): AsyncGenerator<PlacedRule> {
  for await (const one of judged) if ('placed' in one) yield one.placed
}

async function surveyRows(
  judged: AsyncIterable<Judged>,
): Promise<{ rows: number; invalid: number; problems: string[] }> {
  let rows = 0
  let invalid = 0
  const problems: string[] = []
  for await (const one of judged) {
    rows++
    if (!('problem' in one)) continue
    invalid++
    if (problems.length < MOST_SHOWN) problems.push(one.problem)
  }
  if (invalid > problems.length) problems.push(`… and ${invalid - problems.length} more`)
  return { rows, invalid, problems }
}
