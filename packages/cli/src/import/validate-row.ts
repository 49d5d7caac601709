/**
 * Converts a row to a rule of the API. Flags provide the fields that the row omits. Rows that the API would reject are
 * reported with their line before anything is sent. The service validates every rule again.
 */

import { canonicalRuleValue, RULE_VALUE_ERRORS } from '@keyward/address'
import { createAccessRule, type RuleKind, type RuleMode, type RuleScope, type RuleType } from '@keyward/contract'
import type { z } from 'zod'

import type { Row } from './rows.ts'

export type RuleInput = z.input<typeof createAccessRule>

/** The default values of fields that a row omits. */
export interface Defaults {
  kind: RuleKind
  mode?: RuleMode
  type: RuleType
  scope: RuleScope
  scopeId?: string
  note?: string
  expiresAt?: string
}

type ValidatedRow = { rule: RuleInput } | { problem: string }

/** Validates a row. `problem` begins with the position of the row. */
export function validateRow(row: Row, defaults: Defaults): ValidatedRow {
  const { scope, scopeId, ...others } = defaults
  const scoping = 'scope' in row.fields || 'scopeId' in row.fields ? {} : { scope, ...(scopeId && { scopeId }) }
  const candidate = { ...others, ...scoping, ...row.fields }
  const parsed = createAccessRule.safeParse(candidate)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const field = issue?.path.join('.') ?? ''
    return { problem: `${row.where}: ${field === '' ? '' : `${field}: `}${issue?.message ?? 'must be a rule'}` }
  }
  const { type, value } = parsed.data
  if (canonicalRuleValue(type, value) === null)
    return { problem: `${row.where}: value: ${JSON.stringify(value.slice(0, 60))} ${RULE_VALUE_ERRORS[type]}` }
  const { expiresAt, ...rest } = parsed.data
  return { rule: expiresAt ? { ...rest, expiresAt: expiresAt.toISOString() } : rest }
}
