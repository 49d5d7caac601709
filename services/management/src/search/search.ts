/**
 * Searches the resources of one organization that the caller may read (docs/api.md#m15). Every query reads a bounded number of rows, or
 * only the matching part of an index.
 */

import type { Permission } from '@keyward/contract'
import { search as operations, type SearchResults } from '@keyward/contract/management/search'
import { sql } from 'kysely'

import type { ReadContext } from '../context.ts'
import { showCustomer } from '../crud/customer-rows.ts'
import { implement } from '../operations/implement.ts'
import { listRules } from '../resources/access-rules/list.ts'
import { selectLicenses, showLicense } from '../resources/licenses/license-rows.ts'
import { escapeLike, keyBeginsWith, SEARCHED_KEY } from '../resources/licenses/list.ts'
import { HOLDS_SLOT, SEARCHED_HOSTNAME, showFoundMachine } from '../resources/machines/machines.ts'
import { productRows } from '../resources/products/products.ts'

const MAX_RESULTS = 10
/**
 * The minimum length of a text that is searched within names. A shorter text occurs in too many names, and trigram indexes do not support
 * it.
 */
const MIN_TEXT_LENGTH = 3
/** The maximum number of rows that a search for machines reads. Some of these machines no longer hold a slot. */
const MAX_MACHINES_READ = 1_000
/** The number of newest customers that are compared one by one. If they contain enough results, the index is not read. */
const NEWEST_CUSTOMERS = 2_000
/** The number of newest customers in which the trigrams of a searched text are counted, to find the rarest ones. */
const SAMPLED_CUSTOMERS = 300
const TRIGRAM_LENGTH = 3
/** The maximum numbers of trigrams of a text that are counted, and for which the index is searched. */
const MAX_COUNTED_TRIGRAMS = 100
const MAX_SEARCHED_TRIGRAMS = 4
const LETTERS_OR_DIGITS = /^[\p{L}\p{N}]*$/u
const CUSTOMER_TEXT = sql<string>`customer_text(email, name, external_id)`

/** Finds licenses by the beginning of the key, without regard to case and blanks. */
export async function searchLicenses(context: ReadContext, q: string): Promise<SearchResults['licenses']> {
  const found = sql<string>`(
    select id from licenses where organization_id = ${context.organizationId} and ${keyBeginsWith(q)}
    order by ${SEARCHED_KEY} limit ${MAX_RESULTS})`
  const rows = await selectLicenses(context).where('licenses.id', 'in', found).orderBy('licenses.key').execute()
  return rows.map(showLicense)
}

/**
 * Returns the trigrams of the text that are rarest among the newest customers. For each row with the rarest trigram, an index scan looks for all
 * other trigrams, so a scan for all trigrams of a long text is slow. Returns all trigrams of a text with at most MAX_SEARCHED_TRIGRAMS.
 */
async function rarestTrigrams({ db, organizationId }: ReadContext, text: string): Promise<string[]> {
  const characters = Array.from(text)
  const all = characters
    .slice(TRIGRAM_LENGTH - 1)
    .map((_, at) => characters.slice(at, at + TRIGRAM_LENGTH).join(''))
    .filter((trigram) => LETTERS_OR_DIGITS.test(trigram))
  const trigrams = [...new Set(all)].slice(0, MAX_COUNTED_TRIGRAMS)
  if (trigrams.length <= MAX_SEARCHED_TRIGRAMS) return trigrams
  const { rows } = await sql<{ trigram: string }>`
    with sample as materialized (
      select ${CUSTOMER_TEXT} as sampled from customers
      where organization_id = ${organizationId} order by id desc limit ${SAMPLED_CUSTOMERS})
    select trigram from unnest(${trigrams}::text[]) as trigram
    order by (select count(*) from sample where position(trigram in sampled) > 0), trigram
    limit ${MAX_SEARCHED_TRIGRAMS}`.execute(db)
  return rows.map(({ trigram }) => trigram)
}

/** Finds customers by a part of the email, the name or the external id, without regard to case. */
export async function searchCustomers(context: ReadContext, q: string): Promise<SearchResults['customers']> {
  const { db, organizationId } = context
  // A line break separates the fields in `customer_text`. A text that contains a line break would match across fields.
  if (q.length < MIN_TEXT_LENGTH || q.includes('\n')) return []
  const text = q.toLowerCase()
  const isMatch = sql<boolean>`position(${text}::text in ${CUSTOMER_TEXT}) > 0`
  const own = db.selectFrom('customers').selectAll().where('organizationId', '=', organizationId)
  const newest = await db
    .selectFrom(own.orderBy('id', 'desc').limit(NEWEST_CUSTOMERS).as('customers'))
    .selectAll()
    .where(isMatch)
    .limit(MAX_RESULTS)
    .execute()
  if (newest.length === MAX_RESULTS) return newest.map(showCustomer)
  // The index supports `like`. The condition on the whole text then selects among the rows that the index returns.
  const trigrams = await rarestTrigrams(context, text)
  let found = own.where(isMatch)
  for (const trigram of trigrams.length === 0 ? [escapeLike(text)] : trigrams)
    found = found.where(sql<boolean>`${CUSTOMER_TEXT} like ${`%${trigram}%`}`)
  return (await found.limit(MAX_RESULTS).execute()).map(showCustomer)
}

/** Finds products by a part of the name. An organization has so few products that their names need no index. */
async function searchProducts({ db, organizationId }: ReadContext, q: string): Promise<SearchResults['products']> {
  if (q.length < MIN_TEXT_LENGTH) return []
  const rows = await db
    .selectFrom('products')
    .selectAll()
    .where('organizationId', '=', organizationId)
    .where('name', 'ilike', `%${escapeLike(q)}%`)
    .orderBy('id', 'desc')
    .limit(MAX_RESULTS)
    .execute()
  return rows.map(productRows.show)
}

/** Returns the smallest byte string that follows every byte string with this prefix, or null when there is none. */
function afterPrefix(prefix: Buffer): Buffer | null {
  const length = prefix.findLastIndex((byte) => byte < 0xff) + 1
  if (length === 0) return null
  const after = Buffer.from(prefix.subarray(0, length))
  after[length - 1]!++
  return after
}

/** Finds machines by the beginning of the machine id, or by the beginning of the host name without regard to case. */
export async function searchMachines(
  { db, organizationId }: ReadContext,
  q: string,
): Promise<SearchResults['machines']> {
  if (q.length < MIN_TEXT_LENGTH) return []
  const own = db.selectFrom('machines').selectAll().where('organizationId', '=', organizationId)
  const prefix = Buffer.from(q)
  const end = afterPrefix(prefix)
  const byId = own
    .where('machineId', '>=', prefix)
    .$if(end !== null, (found) => found.where('machineId', '<', end ?? prefix))
    .orderBy('machineId')
  const byHostname = own
    .where(SEARCHED_HOSTNAME, 'like', sql<string>`lower(${`${escapeLike(q)}%`})`)
    .orderBy(SEARCHED_HOSTNAME)
  // A machine whose lease has ended keeps its row until the next claim. The rows are therefore limited before HOLDS_SLOT is applied.
  const read = (found: typeof byId) =>
    db
      .selectFrom(found.limit(MAX_MACHINES_READ).as('machines'))
      .selectAll()
      .where(HOLDS_SLOT)
      .limit(MAX_RESULTS)
      .execute()
  const rows = [...(await read(byId)), ...(await read(byHostname))]
  const machines = new Map(rows.map((row) => [row.id, showFoundMachine(row)]))
  return [...machines.values()].slice(0, MAX_RESULTS)
}

/** Finds unexpired rules that have this value or would match it. */
async function searchRules(context: ReadContext, q: string): Promise<SearchResults['accessRules']> {
  const equal = await listRules(context, { limit: MAX_RESULTS, value: q, expired: false })
  const matching = await listRules(context, { limit: MAX_RESULTS, matches: q })
  const rules = new Map([...equal.data, ...matching.data].map((rule) => [rule.id, rule]))
  return [...rules.values()].slice(0, MAX_RESULTS)
}

async function searchAll(
  context: ReadContext & { permissions: ReadonlySet<Permission> },
  given: string,
): Promise<SearchResults> {
  const q = given.trim()
  const may = (permission: Permission) => context.permissions.has(permission)
  return {
    licenses: may('licenses.read') ? await searchLicenses(context, q) : [],
    customers: may('customers.read') ? await searchCustomers(context, q) : [],
    products: may('products.read') ? await searchProducts(context, q) : [],
    machines: may('licenses.read') ? await searchMachines(context, q) : [],
    accessRules: may('licenses.read') ? await searchRules(context, q) : [],
  }
}

export const searchTag = {
  name: 'Search',
  description: 'Finds licenses, customers, products, machines and access rules.',
}

export const search = implement(searchTag, operations, {
  search: {
    summary: 'Search everything',
    description: 'Returns at most 10 of each kind. Kinds that the credential may not read are empty.',
    handle: (call) => searchAll(call, call.query.q),
  },
})
