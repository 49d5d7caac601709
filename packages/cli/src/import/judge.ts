/**
 * From a row to a rule as the API takes it: what the row leaves open comes from the flags, and what the API would refuse
 * is refused here with its line, before anything is sent. The service has the last word all the same.
 */
import { parseCountryCode, parseNetwork } from '@keyward/address'
import { createAccessRule, type RuleKind, type RuleScope, type RuleType } from '@keyward/contract'
import { z } from 'zod'

import type { Row } from './rows.ts'

export type RuleInput = z.input<typeof createAccessRule>

/** What rows leave open. */
export interface Defaults {
  kind: RuleKind
  type: RuleType
  scope: RuleScope
  scopeId?: string
  note?: string
  expiresAt?: string
}

export type Judgement = { rule: RuleInput } | { problem: string }

export function judge(row: Row, defaults: Defaults): Judgement {
  const { scope, scopeId, ...others } = defaults
  const scoping = 'scope' in row.fields || 'scopeId' in row.fields ? {} : { scope, ...(scopeId && { scopeId }) }
  const candidate = { ...others, ...scoping, ...row.fields }
  const parsed = createAccessRule.safeParse(candidate)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const field = issue?.path.join('.') ?? ''
    return { problem: `${row.where}: ${field === '' ? '' : `${field}: `}${issue?.message ?? 'is not a rule'}` }
  }
  const { type, value } = parsed.data
  const problem = valueProblem(type, value)
  if (problem !== null) return { problem: `${row.where}: value: ${JSON.stringify(value.slice(0, 60))} ${problem}` }
  const { expiresAt, ...rest } = parsed.data
  return { rule: expiresAt ? { ...rest, expiresAt: expiresAt.toISOString() } : rest }
}

function valueProblem(type: RuleType, value: string): string | null {
  switch (type) {
    case 'IP':
      return parseNetwork(value) === null ? 'is not an IP address or CIDR range' : null
    case 'COUNTRY':
      return parseCountryCode(value) === null ? 'is not an ISO 3166-1 alpha-2 code' : null
    case 'CUSTOMER':
      return z.uuid().safeParse(value).success ? null : "is not a customer's id"
    case 'HWID':
      return null
    default:
      return type satisfies never
  }
}
