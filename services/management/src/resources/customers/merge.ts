/**
 * Merges one customer into another (docs/api.md#m10). The merge is one transaction, which validators apply as one change. No check is
 * decided while only the licenses or only the rules have moved.
 */

import type { Customer } from '@keyward/contract'
import { sql } from 'kysely'

import { audit } from '../../audit/writer.ts'
import type { WriteContext } from '../../context.ts'
import { updateRow } from '../../crud/owned-rows.ts'
import { invalid } from '../../http/problem.ts'
import { customerRows, type CustomerRow, showCustomer, throwMissingCustomer } from './customer-rows.ts'

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

/**
 * Combines each pair of duplicate rules of the two customers into the rule of the remaining customer. The combined rule has the sum of the
 * match counts, the later `lastMatchedAt` and the later expiry. A missing expiry counts as the latest. The combined rule is enforced if one
 * of the two is enforced and unexpired. If a validator later writes matches of the deleted rule, they are counted for the kept rule
 * (`folded_rules`).
 */
async function combineDuplicates({ db, organizationId }: WriteContext, id: string, into: string): Promise<void> {
  const duplicates = sql`
    select mine.id as kept, other.id as gone, other.expires_at, other.mode
    from access_rules other join access_rules mine
      on mine.organization_id = other.organization_id and mine.customer_id = ${into} and mine.kind = other.kind
      and mine.scope = other.scope and mine.scope_id is not distinct from other.scope_id
    where other.organization_id = ${organizationId} and other.customer_id = ${id}`
  const both = sql`select unnest(array[d.kept, d.gone]) from (${duplicates}) d`
  // Locks the rules before their counters, as a deletion does. Locks the counters in the same order as validators do. The sum is read after
  // these locks, so it includes the matches of a validator's running transaction.
  await sql`select from access_rules where id in (${both}) order by id for update`.execute(db)
  await sql`select from access_rule_counters where rule_id in (${both}) order by rule_id for update`.execute(db)
  await sql`
    with duplicates as (${duplicates}),
    counted as (
      update access_rule_counters c
      set match_count = c.match_count + o.match_count, last_matched_at = greatest(c.last_matched_at, o.last_matched_at)
      from duplicates d join access_rule_counters o on o.rule_id = d.gone
      where c.rule_id = d.kept
    )
    update access_rules r
    set expires_at = case when r.expires_at is null or d.expires_at is null then null else greatest(r.expires_at, d.expires_at) end,
      mode = case when d.expires_at <= now() then r.mode when r.expires_at <= now() or d.mode = 'ENFORCE' then d.mode else r.mode end,
      updated_at = now()
    from duplicates d where r.id = d.kept and r.organization_id = ${organizationId}`.execute(db)
  await sql`update folded_rules f set kept = d.kept from (${duplicates}) d where f.kept = d.gone`.execute(db)
  await sql`insert into folded_rules (gone, kept) select d.gone, d.kept from (${duplicates}) d`.execute(db)
  await sql`delete from access_rules r using (${duplicates}) d
    where r.id = d.gone and r.organization_id = ${organizationId}`.execute(db)
}

async function moveRules({ db, organizationId }: WriteContext, id: string, into: string): Promise<void> {
  await db
    .updateTable('accessRules')
    .set({ customerId: into, value: Buffer.from(into), updatedAt: sql<Date>`now()` })
    .where('organizationId', '=', organizationId)
    .where('customerId', '=', id)
    .execute()
}

async function moveLicenses({ db, organizationId }: WriteContext, id: string, into: string): Promise<void> {
  await db
    .updateTable('licenses')
    .set({ customerId: into, updatedAt: sql<Date>`now()` })
    .where('organizationId', '=', organizationId)
    .where('customerId', '=', id)
    .execute()
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
  return updateRow(customerRows, context, remaining.id, { externalId, updatedAt: new Date() })
}

export async function mergeCustomers(context: WriteContext, id: string, into: string): Promise<Customer> {
  if (id === into) throw invalid('#/into', 'must be the id of another customer; got the id of the customer itself')
  const { db, organizationId } = context
  const { merged, remaining } = await lockBoth(context, id, into)
  await combineDuplicates(context, id, into)
  await moveRules(context, id, into)
  await moveLicenses(context, id, into)
  await db
    .updateTable('mergedCustomers')
    .set({ mergedInto: into })
    .where('organizationId', '=', organizationId)
    .where('mergedInto', '=', id)
    .execute()
  await db.insertInto('mergedCustomers').values({ id, organizationId, mergedInto: into }).execute()
  await db.deleteFrom('customers').where('organizationId', '=', organizationId).where('id', '=', id).execute()
  await audit(context, {
    action: 'customer.merged',
    resourceType: 'customer',
    resourceId: id,
    changes: { into },
    event: { type: 'customer.merged', resource: showCustomer(merged), more: { into } },
  })
  return showCustomer(await inheritExternalId(context, remaining, merged))
}
