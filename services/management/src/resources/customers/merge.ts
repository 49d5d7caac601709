/**
 * Merging one customer into another (API document, "Access rule": the customer rules move along). One transaction, so one step in
 * the change log: there is no moment at which a check sees the licenses moved and the rules not.
 */
import type { Customer } from '@keyward/contract'
import { sql } from 'kysely'

import { audit, type Change } from '../../audit/writer.ts'
import type { Db } from '../../http/context.ts'
import { invalid } from '../../http/problem.ts'
import { type CustomerRow, refuseMissingCustomer, showCustomer } from './store.ts'

async function lockBoth({ db, organizationId }: Change, id: string, into: string) {
  // Before the customers, so that the order of locks is that of every adding of rules.
  await db.selectFrom('organizations').select('id').where('id', '=', organizationId).forNoKeyUpdate().execute()
  const rows = await db
    .selectFrom('customers')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('id', 'in', [id, into])
    .orderBy('id')
    .forUpdate()
    .execute()
  const merged = rows.find((row) => row.id === id) ?? (await refuseMissingCustomer(db, organizationId, id))
  const remaining = rows.find((row) => row.id === into)
  if (!remaining) throw invalid('#/into', 'is not a customer of this organization')
  return { merged, remaining }
}

/**
 * Rules that both have become one: counts added, the later match and the later expiry kept, none being the latest. An expired rule
 * of the remaining customer takes the life of the moved one all the same. What validators have still to count for the rules that go
 * is counted for those that stay.
 */
async function foldTwins({ db, organizationId }: Change, id: string, into: string): Promise<void> {
  const twins = sql`
    select mine.id as kept, other.id as gone, other.expires_at
    from access_rules other join access_rules mine
      on mine.organization_id = other.organization_id and mine.customer_id = ${into} and mine.kind = other.kind
      and mine.scope = other.scope and mine.scope_id is not distinct from other.scope_id
    where other.organization_id = ${organizationId} and other.customer_id = ${id}`
  const both = sql`select unnest(array[t.kept, t.gone]) from (${twins}) t`
  // Rules before their counters, as a deletion locks them; the counters in the order of validators, and before they are read:
  // what is being counted at the moment is waited for.
  await sql`select from access_rules where id in (${both}) order by id for update`.execute(db)
  await sql`select from access_rule_counters where rule_id in (${both}) order by rule_id for update`.execute(db)
  await sql`
    with twins as (${twins}),
    counted as (
      update access_rule_counters c
      set match_count = c.match_count + o.match_count, last_matched_at = greatest(c.last_matched_at, o.last_matched_at)
      from twins t join access_rule_counters o on o.rule_id = t.gone
      where c.rule_id = t.kept
    )
    update access_rules r
    set expires_at = case when r.expires_at is null or t.expires_at is null then null else greatest(r.expires_at, t.expires_at) end,
      updated_at = now()
    from twins t where r.id = t.kept`.execute(db)
  await sql`update folded_rules f set kept = t.kept from (${twins}) t where f.kept = t.gone`.execute(db)
  await sql`insert into folded_rules (gone, kept) select t.gone, t.kept from (${twins}) t`.execute(db)
  await sql`delete from access_rules r using (${twins}) t where r.id = t.gone`.execute(db)
}

async function moveRules({ db, organizationId }: Change, id: string, into: string): Promise<void> {
  await db
    .updateTable('accessRules')
    .set({ customerId: into, value: Buffer.from(into), updatedAt: sql<Date>`now()` })
    .where('organizationId', '=', organizationId)
    .where('customerId', '=', id)
    .execute()
}

async function moveLicenses({ db, organizationId }: Change, id: string, into: string): Promise<void> {
  await db
    .updateTable('licenses')
    .set({ customerId: into, updatedAt: sql<Date>`now()` })
    .where('organizationId', '=', organizationId)
    .where('customerId', '=', id)
    .execute()
}

/** A vendor that keeps its customers in step by `externalId` must find the merged one again. One of its own stays. */
async function inheritExternalId({ db }: Change, remaining: CustomerRow, merged: CustomerRow): Promise<CustomerRow> {
  const { externalId } = merged
  if (remaining.externalId !== null || externalId === null) return remaining
  return db
    .updateTable('customers')
    .set({ externalId, updatedAt: new Date() })
    .where('id', '=', remaining.id)
    .returningAll()
    .executeTakeFirstOrThrow()
}

/** Forgets where rules went once no validator can have kept a count for so long. */
export async function forgetFoldedRules(db: Db): Promise<void> {
  await db
    .deleteFrom('foldedRules')
    .where('foldedAt', '<', sql<Date>`now() - interval '7 days'`)
    .execute()
}

export async function mergeCustomers(change: Change, id: string, into: string): Promise<Customer> {
  if (id === into) throw invalid('#/into', 'is the customer itself')
  const { db, organizationId } = change
  const { merged, remaining } = await lockBoth(change, id, into)
  await foldTwins(change, id, into)
  await moveRules(change, id, into)
  await moveLicenses(change, id, into)
  await db
    .updateTable('mergedCustomers')
    .set({ mergedInto: into })
    .where('organizationId', '=', organizationId)
    .where('mergedInto', '=', id)
    .execute()
  await db.insertInto('mergedCustomers').values({ id, organizationId, mergedInto: into }).execute()
  await db.deleteFrom('customers').where('id', '=', id).execute()
  await audit(change, { action: 'customer.merged', resourceType: 'customer', resourceId: id, changes: { into } })
  return showCustomer(await inheritExternalId(change, remaining, merged))
}
