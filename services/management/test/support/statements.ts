/**
 * Collects the statements that the management service sends to Postgres, as text without values. Finds those that use a table of a tenant
 * without a condition on the organization.
 */

import pg from 'pg'

const OWNED = [
  'access_rules',
  'activity',
  'alerts',
  'audit_log',
  'check_counts',
  'credentials',
  'customers',
  'licenses',
  'members',
  'merged_customers',
  'products',
  'signing_keys',
]
/** Tables whose rows belong to an organization through another row. */
const DEPENDENT = ['access_rule_counters', 'folded_rules', 'license_slots', 'machines']
const TENANT_TABLE = new RegExp(
  `\\b(?:from|join|update|into|using)\\s+"?(?:${[...OWNED, ...DEPENDENT].join('|')})\\b`,
  'i',
)
/** Matches a comparison of the column with a value or with a column of another table. */
const CONDITION = /"?organization_id"?\s*(?:=|in\b|is not distinct from)|"?organizations"?(?:"?\.)?"?id"?\s*=/i
const INSERTED_COLUMN = /insert\s+into\s+"?\w+"?\s*(?:as\s+"?\w+"?\s*)?\([^)]*"?organization_id"?/i

export interface Statements {
  /** Returns the statements without a condition on the organization. */
  unbound: () => string[]
  count: () => number
  stop: () => void
}

/** Collects the statements of every connection of the service in this process. */
export function collectStatements(): Statements {
  const texts = new Set<string>()
  const proto = pg.Client.prototype
  // oxlint-disable-next-line typescript/unbound-method -- called with its receiver below
  const original: (...args: unknown[]) => unknown = proto.query
  function query(
    this: pg.Client & { connectionParameters?: { application_name?: string } },
    ...args: unknown[]
  ): unknown {
    const [first] = args
    const text = typeof first === 'object' && first !== null && 'text' in first ? first.text : first
    if (this.connectionParameters?.application_name === 'keyward-management' && typeof text === 'string')
      texts.add(text)
    return original.apply(this, args)
  }
  Object.assign(proto, { query })
  return {
    unbound: () =>
      [...texts].filter((text) => TENANT_TABLE.test(text) && !CONDITION.test(text) && !INSERTED_COLUMN.test(text)),
    count: () => texts.size,
    stop: () => void Object.assign(proto, { query: original }),
  }
}
