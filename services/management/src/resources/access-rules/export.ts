/** Streams rules in the formats that an import accepts (docs/api.md#r10). One page of rules is in memory at a time. */

import type { AccessRule } from '@keyward/contract'

import type { ReadContext } from '../../context.ts'
import { csvRow, type ReadPage } from '../../crud/export.ts'
import { readRulesAfter, type RuleFilter } from './list.ts'

const PAGE_ROWS = 1_000

const COLUMNS = [
  'kind',
  'mode',
  'type',
  'value',
  'scope',
  'scopeId',
  'set',
  'note',
  'expiresAt',
  'allowSuspendedOrExpired',
] as const satisfies readonly (keyof AccessRule)[]

function jsonRow(rule: AccessRule): string {
  return JSON.stringify(Object.fromEntries(COLUMNS.map((name) => [name, rule[name]])))
}

/** Yields the rules that satisfy a filter, oldest first, as pieces of text. `page` runs the read of each page. */
export async function* exportRules(
  context: ReadContext,
  filter: RuleFilter,
  format: 'csv' | 'json',
  page: ReadPage,
): AsyncGenerator<string> {
  yield format === 'csv' ? csvRow(COLUMNS) : '{"rules":['
  let after: string | null = null
  for (;;) {
    const rules: AccessRule[] = await page(() => readRulesAfter(context, filter, after, PAGE_ROWS))
    const last = rules.at(-1)
    if (last === undefined) break
    if (format === 'csv') yield rules.map((rule) => csvRow(COLUMNS.map((name) => rule[name]))).join('')
    else yield `${after === null ? '' : ','}\n${rules.map(jsonRow).join(',\n')}`
    after = last.id
  }
  if (format === 'json') yield '\n]}\n'
}
