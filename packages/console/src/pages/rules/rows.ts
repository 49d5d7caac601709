/**
 * Reads access rules from text: one value in each line, CSV with a heading line, or JSON. Every row is checked with the schema of the API
 * before anything is sent.
 */

import { canonicalRuleValue, RULE_VALUE_ERRORS } from '@keyward/address/rule-values'
import { createAccessRule } from '@keyward/contract'
import { readCell } from '@keyward/contract/text'
import { z } from 'zod'

import { checked, gather, noRows, readCsv, type Rows } from '../../api/csv-rows.ts'
import { checkInput, InputError } from '../../api/input.ts'
import type { BadRow } from '../../api/work.ts'
import { text } from '../../text.ts'
type Fields = Readonly<Record<string, unknown>>

export interface RuleRow {
  where: string
  /** The rule as the request contains it. */
  body: z.input<typeof createAccessRule>
  /** The kind, type, canonical value and scope of the rule. Rules with the same identity are duplicates. */
  identity: string
}

export type ReadRows = Rows<RuleRow>

const BOOLEANS: Readonly<Record<string, boolean>> = { true: true, false: false }

function checkRow(where: string, fields: Fields): RuleRow | BadRow {
  return checked(where, () => {
    const body: unknown = fields
    checkInput(createAccessRule, body)
    const { kind, type, value, scope, scopeId } = body
    const canonical = canonicalRuleValue(type, value)
    if (canonical === null) throw new InputError({ '': `${RULE_VALUE_ERRORS[type]}; got "${value}"` })
    return { where, body, identity: [kind, type, canonical, scope, scopeId?.toLowerCase() ?? ''].join('\n') }
  })
}

function readLines(content: string, defaults: Fields): ReadRows {
  const lines = content.split('\n').map((line, index) => ({ where: text.line(index + 1), value: line.trim() }))
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

async function readTable(content: string, defaults: Fields): Promise<ReadRows> {
  const read = await readCsv(content)
  if (!Array.isArray(read)) return read
  const cells = (record: Record<string, string>) =>
    Object.fromEntries(Object.entries(record).map(([name, cell]) => [name, readCell(cell)]))
  return gather(read.map(({ where, record }) => checkRow(where, fieldsOf(cells(record), defaults))))
}

const jsonRules = z.union([z.array(z.unknown()), z.object({ rules: z.array(z.unknown()) })])

function readJson(content: string, defaults: Fields): ReadRows {
  let value: unknown
  try {
    value = JSON.parse(content)
  } catch {
    return noRows('JSON', 'The text is not valid JSON.')
  }
  const parsed = jsonRules.safeParse(value)
  if (!parsed.success) return noRows('JSON', 'The JSON must be an array of rules, or an object with the array "rules".')
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
  return isCsv ? readTable(content, defaults) : readLines(content, defaults)
}
