/**
 * Merges one customer into another (docs/api.md#m10). The merge is one transaction, which validators apply as one change. No check is
 * decided while only the licenses or only the rules have moved.
 */

import type { AccessRule, Customer } from '@keyward/contract'
import { sql } from 'kysely'

import { audit, listOf } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { customerRows, type CustomerRow, showCustomer, throwMissingCustomer } from '../../crud/customer-rows.ts'
import { updateRow } from '../../crud/owned-rows.ts'
import { piecesOf } from '../../crud/pieces.ts'
import { type NewEvent, writeEvents } from '../../events/writer.ts'
import { invalid } from '../../http/problem.ts'
import { auditedRule, selectRules, showRule } from '../access-rules/rule-rows.ts'
import { MAX_RULES_OF_VALUE, type Merge, planMerge } from '../access-rules/sources.ts'
import { selectLicenses, showLicense } from '../licenses/license-rows.ts'

/** The maximum number of events about licenses, and of events about rules, that a merge writes. */
const MAX_MERGE_EVENTS = 1_000

async function lockBoth(context: WriteContext, id: string, into: string) {
  const { db, organizationId } = context
  // Locks the organization before the customers, as the addition of rules does, so that a merge and an addition cannot deadlock.
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forNoKeyUpdate().execute()
  const rows = await db
    .selectFrom('customers')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', 'in', [id, into])
    .orderBy('id')
    .forUpdate()
    .execute()
  const merged = rows.find((row) => row.id === id) ?? (await throwMissingCustomer(context, id))
  const remaining = rows.find((row) => row.id === into)
  if (!remaining) throw invalid('#/into', 'must be the id of a customer of this organization')
  return { merged, remaining }
}

/** Returns the customer's rules in the order of their ids, and locks them. */
async function lockRules(context: WriteContext, customerIds: readonly string[]) {
  return selectRules(context)
    .select('accessRules.customerId')
    .where('accessRules.customerId', 'in', customerIds)
    .orderBy('accessRules.id')
    .forUpdate('accessRules')
    .execute()
}

type CustomerRule = Omit<Awaited<ReturnType<typeof lockRules>>[number], 'value'> & { value: string }
type Folds = Merge<CustomerRule>['folded']

/**
 * Deletes each folded rule, and adds its counters to the rule that remains. If a validator later writes matches of the deleted rule, they
 * are counted for the remaining rule (`folded_rules`).
 */
async function foldRules({ db, organizationId }: WriteContext, folded: Folds): Promise<void> {
  for (const piece of piecesOf(folded)) {
    const pairs = sql`unnest(${piece.map(({ gone }) => gone.id)}::uuid[], ${piece.map(({ kept }) => kept.id)}::uuid[])
      as d (gone, kept)`
    // Locks the counters in the same order as validators do. The sum is read after these locks, so it includes the matches of a validator's
    // running transaction.
    await sql`select from access_rule_counters where rule_id in (select unnest(array[d.kept, d.gone]) from ${pairs})
      order by rule_id for update`.execute(db)
    await sql`
      update access_rule_counters c
      set match_count = c.match_count + o.match_count, last_matched_at = greatest(c.last_matched_at, o.last_matched_at)
      from (
        select d.kept, sum(g.match_count)::bigint as match_count, max(g.last_matched_at) as last_matched_at
        from ${pairs} join access_rule_counters g on g.rule_id = d.gone group by d.kept
      ) o
      where c.rule_id = o.kept`.execute(db)
    await sql`update folded_rules f set kept = d.kept from ${pairs} where f.kept = d.gone`.execute(db)
    await sql`insert into folded_rules (gone, kept) select d.gone, d.kept from ${pairs}`.execute(db)
    await sql`delete from access_rules r using ${pairs} where r.id = d.gone and r.organization_id = ${organizationId}`.execute(
      db,
    )
  }
}

/** Moves the rules and returns them as they are afterwards. */
async function moveRules(context: WriteContext, rules: readonly CustomerRule[], into: string): Promise<AccessRule[]> {
  const { db, organizationId } = context
  const moved: AccessRule[] = []
  for (const piece of piecesOf(rules)) {
    const ids = piece.map(({ id }) => id)
    await db
      .updateTable('accessRules')
      .set({ customerId: into, value: Buffer.from(into), updatedAt: sql<Date>`now()` })
      .where('organizationId', '=', organizationId)
      .where('id', 'in', ids)
      .execute()
    const rows = await selectRules(context).where('accessRules.id', 'in', ids).orderBy('accessRules.id').execute()
    moved.push(...rows.map(showRule))
  }
  return moved
}

/** Merges the rules. Returns the audit values and the events of the rules that were moved or deleted. */
async function mergeRules(context: WriteContext, id: string, into: string): Promise<Merged> {
  const rows = await lockRules(context, [id, into])
  const rules = rows.map((row): CustomerRule => Object.assign(row, { value: row.value.toString('utf8') }))
  const own = (customerId: string) => rules.filter((rule) => rule.customerId === customerId)
  const { folded, moved, isExcessive } = planMerge(own(id), own(into))
  if (isExcessive)
    throw invalid(
      '#/into',
      `must leave at most ${MAX_RULES_OF_VALUE} rules of the customer with the same scope; delete rules of one of the customers`,
    )
  const before = new Map(rules.map((rule) => [rule.id, showRule({ ...rule, value: Buffer.from(rule.value) })]))
  const after = await moveRules(context, moved, into)
  await foldRules(context, folded)
  const gone = folded.flatMap((pair) => before.get(pair.gone.id) ?? [])
  return {
    count: moved.length + folded.length,
    changes: {
      movedRules: listOf(after.map(auditedRule)),
      foldedRules: listOf(folded.map((pair) => ({ gone: pair.gone.id, kept: pair.kept.id }))),
    },
    before: {
      movedRules: listOf(moved.flatMap((rule) => before.get(rule.id) ?? []).map(auditedRule)),
      foldedRules: listOf(gone),
    },
    events: [
      ...after.map(
        (rule) => ({ type: 'access_rule.updated', resource: rule, before: before.get(rule.id) ?? rule }) as const,
      ),
      ...gone.map((rule) => ({ type: 'access_rule.deleted', resource: rule }) as const),
    ],
  }
}

/** The resources of one kind that a merge has moved or deleted. */
interface Merged {
  count: number
  changes: object
  before: object
  events: NewEvent[]
}

/** Moves the licenses. Returns the ids as audit values, and the events of the first licenses. */
async function moveLicenses(context: WriteContext, id: string, into: string): Promise<Merged> {
  const { db, organizationId } = context
  const first = await selectLicenses(context)
    .where('licenses.customerId', '=', id)
    .orderBy('licenses.id')
    .limit(MAX_MERGE_EVENTS)
    .execute()
  const { numUpdatedRows } = await db
    .updateTable('licenses')
    .set({ customerId: into, updatedAt: sql<Date>`now()` })
    .where('organizationId', '=', organizationId)
    .where('customerId', '=', id)
    .executeTakeFirstOrThrow()
  const count = Number(numUpdatedRows)
  const events: NewEvent[] = []
  for (const piece of piecesOf(first)) {
    const before = new Map(piece.map((row) => [row.id, showLicense(row)]))
    const rows = await selectLicenses(context)
      .where('licenses.id', 'in', [...before.keys()])
      .orderBy('licenses.id')
      .execute()
    events.push(
      ...rows.map(
        (row) => ({ type: 'license.updated', resource: showLicense(row), before: before.get(row.id) ?? row }) as const,
      ),
    )
  }
  const licenses = { count, first: listOf(first.map((row) => ({ id: row.id }))).first }
  return { count, changes: { licenses }, before: {}, events }
}

/**
 * Copies the external id of the merged customer to the remaining customer, unless the remaining customer has one. Vendors find customers by
 * their external ids.
 */
async function inheritExternalId(
  context: WriteContext,
  remaining: CustomerRow,
  merged: CustomerRow,
): Promise<CustomerRow> {
  const { externalId } = merged
  if (remaining.externalId !== null || externalId === null) return remaining
  const updated = await updateRow(customerRows, context, remaining.id, { externalId, updatedAt: new Date() })
  await audit(context, {
    action: 'customer.changed',
    resourceType: 'customer',
    resourceId: remaining.id,
    changes: { externalId },
    before: { externalId: null },
    event: { type: 'customer.updated', resource: showCustomer(updated), before: showCustomer(remaining) },
  })
  return updated
}

export async function mergeCustomers(context: WriteContext, id: string, into: string): Promise<Customer> {
  if (id === into) throw invalid('#/into', 'must be the id of another customer; got the id of the customer itself')
  const { db, organizationId, actor } = context
  const { merged, remaining } = await lockBoth(context, id, into)
  const rules = await mergeRules(context, id, into)
  const licenses = await moveLicenses(context, id, into)
  await db
    .updateTable('mergedCustomers')
    .set({ mergedInto: into })
    .where('organizationId', '=', organizationId)
    .where('mergedInto', '=', id)
    .execute()
  await db.updateTable('mails').set({ customerId: into }).where('customerId', '=', id).execute()
  await db.insertInto('mergedCustomers').values({ id, organizationId, mergedInto: into }).execute()
  await db.deleteFrom('customers').where('organizationId', '=', organizationId).where('id', '=', id).execute()
  const { email, name, externalId, metadata } = merged
  await audit(context, {
    action: 'customer.merged',
    resourceType: 'customer',
    resourceId: id,
    changes: { into, ...licenses.changes, ...rules.changes },
    before: { email, name, externalId, metadata, ...rules.before },
    event: {
      type: 'customer.merged',
      resource: showCustomer(merged),
      more: { into, licenses: licenses.count, rules: rules.count },
    },
  })
  const events = [...rules.events.slice(0, MAX_MERGE_EVENTS), ...licenses.events]
  for (const piece of piecesOf(events))
    await writeEvents(
      db,
      piece.map((event) => Object.assign(event, { organizationId, actor })),
    )
  return showCustomer(await inheritExternalId(context, remaining, merged))
}
