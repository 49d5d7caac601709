/**
 * Enforces quotas (docs/api.md#m13), which limit the number of rows of each kind in an organization, and the bytes of its metadata, audit
 * entries and events. A quota limits additions only, so a lower limit changes no existing row. A quota of rows holds under concurrent
 * requests, because near a limit every addition locks the organization's row. Triggers count the rows and bytes, so that requests need not
 * count them.
 */

import {
  type ByteQuota,
  defaultQuota,
  MAX_IMPORT_MACHINES,
  MAX_IMPORT_ROWS,
  MAX_MACHINES,
  MAX_SET_RULES,
  type Plan,
  type Quota,
  type QuotaUse,
} from '@keyward/contract'
import { type JsonObject } from '@keyward/database'
import { together } from '@keyward/database/kysely'
import { sql } from 'kysely'

import type { Db, ReadContext, WriteContext } from '../context.ts'
import { ApiError } from '../http/problem.ts'

/**
 * The quotas of rows that requests of this service add. `machinesPerLicense` limits each license separately, and the function `claim_slots`
 * of the database enforces `machines`.
 */
export type CountedQuota = Exclude<Quota, 'machinesPerLicense' | 'machines' | ByteQuota>
/** The quotas that an import needs too. */
type RowQuota = CountedQuota | 'machines'

/** An upper bound for the number of requests that all management processes together run at once. */
const MAX_CONCURRENT_REQUESTS = 500

/** A counter with more rows than this is replaced with one row that contains their sum. */
const MAX_COUNTER_ROWS = 100

/** The maximum number of rows that one request adds. */
const MAX_ROWS: Record<RowQuota, number> = {
  licenses: MAX_IMPORT_ROWS,
  products: 1,
  customers: MAX_IMPORT_ROWS,
  machines: MAX_IMPORT_MACHINES,
  apiKeys: 1,
  tokens: 1,
  members: 1,
  accessRules: MAX_SET_RULES,
  ruleSets: MAX_IMPORT_ROWS,
  signingKeys: 1,
  webhookEndpoints: 1,
  portalSessions: 1,
}

const NOUNS: Record<Quota, string> = {
  licenses: 'licenses',
  products: 'products',
  customers: 'customers',
  apiKeys: 'API keys',
  tokens: 'management tokens and access tokens',
  members: 'members',
  accessRules: 'access rules, expired ones included',
  ruleSets: 'sets of access rules',
  signingKeys: 'signing keys',
  webhookEndpoints: 'webhook endpoints',
  portalSessions: 'links and sessions of the portal',
  machinesPerLicense: 'machines of a license',
  machines: 'machines of all licenses',
  storedBytes: 'bytes of metadata, audit entries and events',
  bytesPerDay: 'bytes of new audit entries and events on a day in UTC',
}

/** An organization's plan, and the limits that the operator has changed for the organization. */
export interface Limits {
  plan: Plan
  quotas: JsonObject
}

/** Returns the limit of a quota. */
export function limitOf({ plan, quotas }: Limits, quota: Quota): number {
  const limit = quotas[quota]
  if (typeof limit !== 'number') return defaultQuota(plan, quota)
  // Earlier versions accepted limits above MAX_MACHINES, and such a limit had no effect.
  return quota === 'machinesPerLicense' ? Math.min(limit, MAX_MACHINES) : limit
}

/**
 * Returns the organization's limit of the quota. With `lock`, the organization is locked until the transaction ends. Meanwhile no other
 * transaction that is near a limit adds rows to the organization.
 */
async function readLimit({ db, organizationId }: ReadContext, quota: Quota, lock: boolean): Promise<number> {
  const limits = await db
    .selectFrom('organizations')
    .select(['plan', 'quotas'])
    .where('id', '=', organizationId)
    .$if(lock, (query) => query.forNoKeyUpdate())
    .executeTakeFirstOrThrow()
  return limitOf(limits, quota)
}

async function countUsed({ db, organizationId }: ReadContext, quota: RowQuota): Promise<number> {
  const { used, rows } = await db
    .selectFrom('organizationUsage')
    .select((builder) => [
      sql<number>`coalesce(${builder.fn.sum('used')}, 0)::bigint`.as('used'),
      builder.fn.countAll<number>().as('rows'),
    ])
    .where('organizationId', '=', organizationId)
    .where('quota', '=', quota)
    .executeTakeFirstOrThrow()
  if (rows > MAX_COUNTER_ROWS) await sql`select fold_usage(${organizationId}::uuid, ${quota})`.execute(db)
  return used
}

/** Selects the uses that count now. Uses of past days are deleted later. */
const COUNTS_NOW = sql<boolean>`(day is null or day = utc_day())`

interface ByteUse extends Limits {
  stored: number
  today: number
  rows: number
}

/**
 * Throws QUOTA_EXCEEDED when the organization has reached a quota of bytes. The request that reaches a limit completes. A request that needs
 * no body, such as a revocation or a deletion, ignores `storedBytes` and may use `bytesPerDay` twice, so that a vendor can act while an
 * attacker uses up the quotas.
 */
export async function requireBytes({ db, organizationId }: ReadContext, needsBody: boolean): Promise<void> {
  const { rows } = await sql<ByteUse>`
    select o.plan, o.quotas, count(u.quota)::integer as rows,
      coalesce(sum(u.used) filter (where u.quota = 'storedBytes'), 0)::bigint as stored,
      coalesce(sum(u.used) filter (where u.quota = 'bytesPerDay'), 0)::bigint as today
    from organizations o left join organization_usage u
      on u.organization_id = o.id and u.quota in ('storedBytes', 'bytesPerDay') and ${COUNTS_NOW}
    where o.id = ${organizationId} group by o.id`.execute(db)
  const [use] = rows
  if (use === undefined) return
  if (use.rows > 2 * MAX_COUNTER_ROWS)
    await sql`select fold_usage(${organizationId}::uuid, quota) from unnest(array['storedBytes', 'bytesPerDay']) quota`.execute(
      db,
    )
  const daily = limitOf(use, 'bytesPerDay')
  if (use.today >= daily * (needsBody ? 1 : 2)) throw bytesExceeded('bytesPerDay', daily, use.today)
  const stored = limitOf(use, 'storedBytes')
  if (needsBody && use.stored >= stored) throw bytesExceeded('storedBytes', stored, use.stored)
}

const REMEDIES: Record<ByteQuota, string> = {
  bytesPerDay: 'Retry on the next day, or ask the operator for a higher quota.',
  storedBytes: 'Delete resources with metadata, or ask the operator for a higher quota.',
}

function bytesExceeded(name: ByteQuota, limit: number, used: number): ApiError {
  const detail = `The quota ${name} allows ${limit} ${NOUNS[name]}, and the organization has ${used}. ${REMEDIES[name]}`
  return new ApiError('QUOTA_EXCEEDED', detail, { quota: { name, limit, used } })
}

function exceeded(name: Quota, limit: number, used: number, added: number): ApiError {
  return new ApiError(
    'QUOTA_EXCEEDED',
    `The quota ${name} allows ${limit} ${NOUNS[name]}. The organization has ${used}, and the request adds ${added}. ` +
      'Delete some or ask the operator for a higher quota.',
    { quota: { name, limit, used } },
  )
}

/** Throws QUOTA_EXCEEDED unless the organization may have `added` more rows. Call it before the rows are added. */
export async function requireWithinQuota(context: WriteContext, quota: RowQuota, added = 1): Promise<void> {
  if (added === 0) return
  const remaining = requireRoom(quota, await readUse(context, quota), added)
  // While the remaining rows suffice for all requests that can run at once, no request takes the lock.
  if (remaining < MAX_CONCURRENT_REQUESTS * MAX_ROWS[quota])
    requireRoom(quota, await readUse(context, quota, true), added)
}

interface Use {
  limit: number
  used: number
}

/** Returns the limit and the use of a quota. They stay valid if `lock` is set or the transaction has locked the organization. */
export async function readUse(context: WriteContext, quota: RowQuota, lock = false): Promise<Use> {
  const [limit, used] = await together(readLimit(context, quota, lock), countUsed(context, quota))
  return { limit, used }
}

/** Returns the number of rows that still fit after the addition. Throws QUOTA_EXCEEDED. */
export function requireRoom(quota: RowQuota, { limit, used }: Use, added: number): number {
  if (added > 0 && used + added > limit) throw exceeded(quota, limit, used, added)
  return limit - used - added
}

/** Throws QUOTA_EXCEEDED when one of the machine limits exceeds the quota. Null, which means no limit, is always allowed. */
export async function requireMachinesWithinQuota(
  context: ReadContext,
  maxMachines: readonly (number | null)[],
): Promise<void> {
  const most = maxMachines.reduce<number>((max, one) => Math.max(max, one ?? 0), 0)
  if (most === 0) return
  const limit = await readLimit(context, 'machinesPerLicense', false)
  if (most <= limit) return
  throw new ApiError(
    'QUOTA_EXCEEDED',
    `The quota machinesPerLicense allows ${limit} machines of a license, and policy.maxMachines is ${most}. ` +
      'Lower policy.maxMachines or ask the operator for a higher quota.',
    { quota: { name: 'machinesPerLicense', limit, used: most } },
  )
}

/** Returns the use and the limit of each quota. */
export async function showQuotas(
  { db, organizationId }: ReadContext,
  limits: Limits,
): Promise<Record<Quota, QuotaUse>> {
  const rows = await db
    .selectFrom('organizationUsage')
    .select(['quota', (builder) => sql<number>`${builder.fn.sum('used')}::bigint`.as('used')])
    .where('organizationId', '=', organizationId)
    .where(COUNTS_NOW)
    .groupBy('quota')
    .execute()
  const used = new Map(rows.map((row) => [row.quota, row.used]))
  const show = (quota: Quota): QuotaUse => ({ used: used.get(quota) ?? 0, limit: limitOf(limits, quota) })
  return {
    licenses: show('licenses'),
    products: show('products'),
    customers: show('customers'),
    apiKeys: show('apiKeys'),
    tokens: show('tokens'),
    members: show('members'),
    accessRules: show('accessRules'),
    ruleSets: show('ruleSets'),
    signingKeys: show('signingKeys'),
    webhookEndpoints: show('webhookEndpoints'),
    portalSessions: show('portalSessions'),
    machinesPerLicense: { used: null, limit: limitOf(limits, 'machinesPerLicense') },
    machines: show('machines'),
    storedBytes: show('storedBytes'),
    bytesPerDay: show('bytesPerDay'),
  }
}

/** The quotas that bound the disk, because users of apps and single requests can use very much of them. */
export const DISK_QUOTAS = ['machines', 'storedBytes', 'bytesPerDay'] as const satisfies readonly Quota[]

export interface DiskQuotaUse {
  organizationId: string
  quota: (typeof DISK_QUOTAS)[number]
  used: number
  limit: number
}

/** Returns the uses of these quotas that have reached `share` of their limit, the largest share first. */
export async function listDiskUses(db: Db, share: number): Promise<DiskQuotaUse[]> {
  const { rows } = await sql<Limits & Omit<DiskQuotaUse, 'limit'>>`
    select u.organization_id, u.quota, o.plan, o.quotas, sum(u.used)::bigint as used
    from organization_usage u join organizations o on o.id = u.organization_id
    where u.quota = any (${DISK_QUOTAS}) and ${COUNTS_NOW} group by 1, 2, o.id`.execute(db)
  return rows
    .map(({ organizationId, quota, used, ...limits }) => ({
      organizationId,
      quota,
      used,
      limit: limitOf(limits, quota),
    }))
    .filter(({ used, limit }) => used >= limit * share)
    .toSorted((one, other) => other.used / other.limit - one.used / one.limit)
}

/** Replaces the rows of each counter with more than MAX_COUNTER_ROWS rows by one row that contains their sum, and forgets past days. */
export async function foldCounters(db: Db): Promise<void> {
  await sql`
    select fold_usage(organization_id, quota) from organization_usage
    group by organization_id, quota having count(*) > ${MAX_COUNTER_ROWS} or min(day) < utc_day()`.execute(db)
}
