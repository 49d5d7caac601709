/**
 * Reads access rules from text: one value in each line, CSV with a heading line, or JSON. Every row is checked with the schema of the API
 * before anything is sent.
 */

import { canonicalRuleValue, RULE_VALUE_ERRORS } from '@keyward/address/rule-values'
import { createAccessRule } from '@keyward/contract'
import { readCell } from '@keyward/contract/text'
import { z } from 'zod'

import { checkInput, InputError } from '../../api/input.ts'
import type { BadRow } from '../../api/work.ts'
import { text } from '../../text.ts'

const t = text.ruleImport
type Fields = Readonly<Record<string, unknown>>

export interface RuleRow {
  where: string
  /** The rule as the request contains it. */
  body: z.input<typeof createAccessRule>
  /** The kind, type, canonical value and scope of the rule. Rules with the same identity are duplicates. */
  identity: string
}

export interface ReadRows {
  rows: RuleRow[]
  bad: BadRow[]
}

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false }

function checkRow(where: string, fields: Fields): RuleRow | BadRow {
  const body: unknown = fields
  try {
    checkInput(createAccessRule, body)
  } catch (error) {
    if (error instanceof InputError) return { where, detail: error.message }
    throw error
  }
  const { kind, type, value, scope, scopeId } = body
  const canonical = canonicalRuleValue(type, value)
  if (canonical === null) return { where, detail: `${RULE_VALUE_ERRORS[type]}; got "${value}"` }
  return { where, body, identity: [kind, type, canonical, scope, scopeId?.toLowerCase() ?? ''].join('\n') }
}

function gather(checked: readonly (RuleRow | BadRow)[]): ReadRows {
  const read: ReadRows = { rows: [], bad: [] }
  for (const row of checked)
    if ('body' in row) read.rows.push(row)
    else read.bad.push(row)
  return read
}

function readLines(content: string, defaults: Fields): ReadRows {
  const lines = content.split('\n').map((line, index) => ({ where: t.line(index + 1), value: line.trim() }))
  const used = lines.filter(({ value }) => value !== '' && !value.startsWith('#'))
  return gather(used.map(({ where, value }) => checkRow(where, { ...defaults, value })))
}

/** Returns the non-empty fields of a row, and the defaults of all other fields. */
function fieldsOf(record: Fields, defaults: Fields): Fields {
  const given = Object.entries(record).filter(([, value]) => value !== '' && value !== null)
  const fields = Object.fromEntries(
    given.map(([name, value]) => [
      name,
      name === 'allowSuspendedOrExpired' && typeof value === 'string'
        ? (BOOLEANS[value.toLowerCase()] ?? value)
        : value,
    ]),
  )
  // A row without `scope` uses the default `scope` and `scopeId`. A row with `scope` uses neither default.
  const { scopeId: _, ...others } = defaults
  return { ...('scope' in fields ? others : defaults), ...fields }
}

const csvRecord = z.array(z.object({ record: z.record(z.string(), z.string()), info: z.object({ lines: z.int() }) }))

async function readCsv(content: string, defaults: Fields): Promise<ReadRows> {
  const { CsvError, parse } = await import('csv-parse/browser/esm/sync')
  try {
    const records = csvRecord.parse(
      parse(content, { columns: true, info: true, skip_empty_lines: true, trim: true, bom: true }),
    )
    const read = (record: Record<string, string>) =>
      Object.fromEntries(Object.entries(record).map(([name, cell]) => [name, readCell(cell)]))
    return gather(records.map(({ record, info }) => checkRow(t.line(info.lines), fieldsOf(read(record), defaults))))
  } catch (error) {
    if (error instanceof CsvError) return { rows: [], bad: [{ where: 'CSV', detail: error.message }] }
    throw error
  }
}

const jsonRules = z.union([z.array(z.unknown()), z.object({ rules: z.array(z.unknown()) })])

function readJson(content: string, defaults: Fields): ReadRows {
  const failed = (detail: string): ReadRows => ({ rows: [], bad: [{ where: 'JSON', detail }] })
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch {
    return failed(t.noJson)
  }
  const parsed = jsonRules.safeParse(value)
  if (!parsed.success) return failed(t.noArray)
  const list = Array.isArray(parsed.data) ? parsed.data : parsed.data.rules
  return gather(
    list.map((item, index) => {
      const isObject = typeof item === 'object' && item !== null && !Array.isArray(item)
      return checkRow(`#${index + 1}`, fieldsOf(isObject ? { ...item } : { value: item }, defaults))
    }),
  )
}

/** Reads rules from text. `defaults` supplies fields that a row lacks, such as kind, type and scope. */
export async function readRuleRows(content: string, defaults: Fields): Promise<ReadRows> {
  const trimmed = content.trimStart()
  if (/^[[{]/.test(trimmed)) return readJson(content, defaults)
  const [heading = ''] = trimmed.split('\n')
  const isCsv = heading.includes(',') && heading.split(',').some((name) => name.trim().replaceAll('"', '') === 'value')
  return isCsv ? readCsv(content, defaults) : readLines(content, defaults)
}
