/**
 * `Idempotency-Key` (docs/api.md#m2): the response of a POST is stored for a day, in the transaction of its change, so neither exists
 * without the other. Secrets are removed before a response is stored. While a request runs, its transaction holds an advisory lock on
 * the key; the lock ends with the connection, also when the process dies.
 */

import { createHash } from 'node:crypto'

import { sql } from 'kysely'
import { z } from 'zod'

import type { Db } from './context.ts'
import { ApiError } from './problem.ts'

const RETENTION = sql`interval '24 hours'`

/** A response as it is sent. */
export interface WireResponse {
  status: number
  headers: Record<string, string>
  /** '' for none. */
  body: string
}

export interface IdempotentRequest {
  owner: string
  key: string
  /** SHA-256 of method, path and the bytes of the body: a key may be reused for an equal request only. */
  requestHash: Buffer
}

const headersSchema = z.record(z.string(), z.string())

/** Returns the key and the hash of a request, or null without a key. Throws INVALID_REQUEST for a malformed key. */
export function idempotentRequest(
  owner: string,
  key: string | undefined,
  request: { method: string; path: string; bodyHash: Buffer },
): IdempotentRequest | null {
  if (key === undefined) return null
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new ApiError(
      'INVALID_REQUEST',
      `The header Idempotency-Key must have 1 to 255 printable ASCII characters without spaces; got ${key.length} characters.`,
    )
  const head = `${request.method} ${request.path}\n`
  return { owner, key, requestHash: createHash('sha256').update(head).update(request.bodyHash).digest() }
}

/**
 * Returns the stored response of the request, or null when this is the first. Throws IDEMPOTENCY_KEY_IN_USE while another request
 * with the key runs, and IDEMPOTENCY_KEY_REUSED when the key belongs to a different request.
 */
export async function findStoredResponse(db: Db, request: IdempotentRequest): Promise<WireResponse | null> {
  const { owner, key } = request
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`${owner}\n${key}`}, 0)) as locked`.execute(db)
  if (!rows[0]?.locked) throw new ApiError('IDEMPOTENCY_KEY_IN_USE', undefined, { headers: { 'retry-after': '1' } })
  const stored = await db
    .selectFrom('idempotencyKeys')
    .select(['requestHash', 'status', 'headers', 'body'])
    .where('owner', '=', owner)
    .where('key', '=', key)
    .where('createdAt', '>', sql<Date>`now() - ${RETENTION}`)
    .executeTakeFirst()
  if (!stored) return null
  if (!request.requestHash.equals(stored.requestHash)) throw new ApiError('IDEMPOTENCY_KEY_REUSED')
  return {
    status: stored.status ?? 500,
    headers: { ...headersSchema.parse(stored.headers), 'idempotency-replayed': 'true' },
    body: z.string().parse(stored.body),
  }
}

/** Stores the response. The body is stored as a JSON string, because a machine id in it may contain NUL, which jsonb cannot hold. */
export async function storeResponse(db: Db, request: IdempotentRequest, response: WireResponse): Promise<void> {
  const row = {
    requestHash: request.requestHash,
    status: response.status,
    headers: JSON.stringify(response.headers),
    body: JSON.stringify(response.body),
    createdAt: sql<Date>`now()`,
  }
  await db
    .insertInto('idempotencyKeys')
    .values({ owner: request.owner, key: request.key, ...row })
    .onConflict((conflict) => conflict.columns(['owner', 'key']).doUpdateSet(row))
    .execute()
}
