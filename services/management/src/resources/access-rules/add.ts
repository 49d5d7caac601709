/**
 * Adding access rules, one or a thousand, by the same few set-based statements. All or nothing: every row is checked before the
 * first is written. Order of refusals: 422, then (for one rule) 409, then 403.
 */
import { type AccessRule, type CreateAccessRule } from '@keyward/contract'
import { uuidv7 } from '@keyward/database'
import { type RawBuilder, sql } from 'kysely'

import { audit, type Change, toJsonb } from '../../audit/writer.ts'
import { type Fault, Refusal } from '../../http/problem.ts'
import { invalidRows, type Row, type Rows } from '../../http/validation-errors.ts'
import { canonicalValue, valueFault } from './canonical.ts'
import { lockPlan, refuseBeyondPlan } from './plan-limits.ts'
import { selectRules, showRule } from './show.ts'

/** A rule in canonical form. */
interface Candidate extends Omit<CreateAccessRule, 'scopeId'> {
  id: string
  scopeId: string | null
  /** Where it stands in the request. */
  pointer: string
}

/** Fills `faults` with the rows that have no canonical value. */
function canonicalize(rows: readonly Row<CreateAccessRule>[], faults: Fault[]): Candidate[] {
  return rows.flatMap(({ input, pointer }): Candidate[] => {
    const value = canonicalValue(input.type, input.value)
    const scopeId = input.scopeId ?? null
    if (value !== null) return [{ ...input, value, scopeId, id: uuidv7(), pointer }]
    faults.push({ pointer: `${pointer}/value`, detail: valueFault[input.type] })
    return []
  })
}

async function missingIds(
  { db, organizationId }: Change,
  table: 'products' | 'licenses' | 'customers',
  ids: readonly (string | null)[],
): Promise<Set<string>> {
  const wanted = new Set(ids.filter((id) => id !== null))
  if (wanted.size === 0) return wanted
  const found = await db
    .selectFrom(table)
    .select('id')
    .where('organizationId', '=', organizationId)
    .where('id', '=', sql<string>`any(${[...wanted]}::uuid[])`)
    .execute()
  for (const { id } of found) wanted.delete(id)
  return wanted
}

/** Every scope and customer that the organization does not have. */
async function findMissing(change: Change, rules: readonly Candidate[]): Promise<Fault[]> {
  const scopeIds = (scope: string) => rules.map((rule) => (rule.scope === scope ? rule.scopeId : null))
  const products = await missingIds(change, 'products', scopeIds('PRODUCT'))
  const licenses = await missingIds(change, 'licenses', scopeIds('LICENSE'))
  const customerIds = rules.map((rule) => (rule.type === 'CUSTOMER' ? rule.value : null))
  const customers = await missingIds(change, 'customers', customerIds)
  return rules.flatMap((rule): Fault[] => {
    const scopes = rule.scope === 'PRODUCT' ? products : licenses
    const badScope = rule.scopeId !== null && scopes.has(rule.scopeId)
    const badValue = rule.type === 'CUSTOMER' && customers.has(rule.value)
    const what = rule.scope.toLowerCase()
    return [
      ...(badScope ? [{ pointer: `${rule.pointer}/scopeId`, detail: `is not a ${what} of this organization` }] : []),
      ...(badValue ? [{ pointer: `${rule.pointer}/value`, detail: valueFault.CUSTOMER }] : []),
    ]
  })
}

const bytes = (rule: Candidate): Buffer => Buffer.from(rule.value)

/** The candidates as a table `n`, in their order. */
function asTable(rules: readonly Candidate[]): RawBuilder<unknown> {
  const column = <Value>(pick: (rule: Candidate) => Value): Value[] => rules.map(pick)
  const scopedTo = (scope: string) => column((rule) => (rule.scope === scope ? rule.scopeId : null))
  return sql`unnest(
    ${column((rule) => rule.id)}::uuid[], ${column((rule) => rule.kind)}::text[], ${column((rule) => rule.type)}::text[],
    ${column(bytes)}::bytea[], ${column((rule) => rule.scope)}::text[],
    ${scopedTo('PRODUCT')}::uuid[], ${scopedTo('LICENSE')}::uuid[],
    ${column((rule) => (rule.type === 'CUSTOMER' ? rule.value : null))}::uuid[],
    ${column((rule) => rule.note ?? null)}::text[], ${column((rule) => rule.expiresAt ?? null)}::timestamptz[],
    ${column((rule) => rule.allowSuspendedOrExpired ?? false)}::boolean[]
  ) as n (id, kind, type, value, scope, product_id, license_id, customer_id, note, expires_at, allow_suspended_or_expired)`
}

interface Twin {
  candidateId: string
  ruleId: string
  expired: boolean
}

/** Rules that are there already. The two arms let each look-up use the unique index, which cannot compare nulls. */
async function findTwins({ db, organizationId }: Change, rules: readonly Candidate[]): Promise<Twin[]> {
  const same = sql`r.organization_id = ${organizationId} and r.kind = n.kind and r.type = n.type and r.value = n.value
    and r.scope = n.scope`
  const { rows } = await sql<Twin>`
    select n.id as "candidateId", t.id as "ruleId", coalesce(t.expires_at <= now(), false) as expired
    from ${asTable(rules)} cross join lateral (
      select r.id, r.expires_at from access_rules r where ${same} and r.scope_id = coalesce(n.license_id, n.product_id)
      union all
      select r.id, r.expires_at from access_rules r
      where ${same} and r.scope_id is null and n.license_id is null and n.product_id is null
    ) t`.execute(db)
  return rows
}

async function insertRules({ db, organizationId, actor }: Change, rules: readonly Candidate[]): Promise<void> {
  await sql`
    insert into access_rules (id, organization_id, kind, type, value, scope, product_id, license_id, customer_id, note,
      expires_at, allow_suspended_or_expired, created_by)
    select n.id, ${organizationId}, n.kind, n.type, n.value, n.scope, n.product_id, n.license_id, n.customer_id, n.note,
      n.expires_at, n.allow_suspended_or_expired, ${toJsonb(actor)}::jsonb
    from ${asTable(rules)}`.execute(db)
}

/** The first of each (kind, type, value, scope, scopeId). */
function withoutRepeats(rules: readonly Candidate[]): Candidate[] {
  const byIdentity = new Map<string, Candidate>()
  for (const rule of rules) {
    const identity = JSON.stringify([rule.kind, rule.type, rule.scope, rule.scopeId, rule.value])
    if (!byIdentity.has(identity)) byIdentity.set(identity, rule)
  }
  return [...byIdentity.values()]
}

interface Added {
  rules: Candidate[]
  /** Unexpired rules that were there already. */
  existing: Twin[]
}

async function addRules(change: Change, given: Rows<CreateAccessRule>, onExisting: 'refuse' | 'skip'): Promise<Added> {
  const faults = [...given.faults]
  const candidates = canonicalize(given.rows, faults)
  const plan = await lockPlan(change)
  faults.push(...(await findMissing(change, candidates)))
  if (faults.length > 0) throw invalidRows(faults)
  const distinct = withoutRepeats(candidates)
  const twins = await findTwins(change, distinct)
  const existing = twins.filter((twin) => !twin.expired)
  const [first] = existing
  if (onExisting === 'refuse' && first)
    throw new Refusal('RULE_EXISTS', `The rule exists as ${first.ruleId}.`, { ruleId: first.ruleId })
  const taken = new Set(existing.map((twin) => twin.candidateId))
  const rules = distinct.filter((rule) => !taken.has(rule.id))
  await refuseBeyondPlan(change, plan, rules)
  const expired = twins.flatMap((twin) => (twin.expired ? twin.ruleId : []))
  if (expired.length > 0) await change.db.deleteFrom('accessRules').where('id', 'in', expired).execute()
  if (rules.length > 0) await insertRules(change, rules)
  return { rules, existing }
}

/** Refuses with RULE_EXISTS when the same unexpired rule is there; an expired one is replaced. */
export async function addRule(change: Change, input: CreateAccessRule): Promise<AccessRule> {
  const { rules } = await addRules(change, { rows: [{ input, at: 0, pointer: '#' }], faults: [] }, 'refuse')
  const [added] = rules
  if (!added) throw new Error('A rule that does not exist yet was not added')
  const { pointer: _pointer, ...rule } = added
  await audit(change, {
    action: 'access_rule.created',
    resourceType: 'access_rule',
    resourceId: rule.id,
    changes: rule,
  })
  const row = await selectRules(change.db, change.organizationId)
    .where('accessRules.id', '=', rule.id)
    .executeTakeFirstOrThrow()
  return showRule(row)
}

/** All or nothing. Every bad row is told in one answer, whatever is wrong with it. */
export async function importRules(
  change: Change,
  given: Rows<CreateAccessRule>,
): Promise<{ created: number; skipped: number }> {
  const { rules } = await addRules(change, given, 'skip')
  const result = { created: rules.length, skipped: given.rows.length - rules.length }
  const changes = { ...result, ids: rules.map((rule) => rule.id) }
  await audit(change, { action: 'access_rule.imported', resourceType: 'access_rule', resourceId: null, changes })
  return result
}
