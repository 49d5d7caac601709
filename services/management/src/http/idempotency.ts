/**
 * Implements `Idempotency-Key` (docs/api.md#m2). The response of a POST is stored for 7 days, in the transaction of its change, so neither
 * exists without the other. Secrets are removed before a response is stored. While a request runs, its transaction holds an advisory lock
 * on the key. Postgres releases the lock when the connection ends, even if the process is killed. The number of bytes that an organization
 * stores is limited.
 */

import { createHash } from 'node:crypto'

import { sql } from 'kysely'
import { z } from 'zod'

import type { Db } from '../context.ts'
import { ApiError } from './problem.ts'
import type { WireResponse } from './response.ts'

export const IDEMPOTENCY_DAYS = 7
const RETENTION = sql`make_interval(hours => ${24 * IDEMPOTENCY_DAYS})`
/** The maximum number of bytes that an organization stores. */
const MAX_BYTES = 1024 ** 3
/** The size in bytes of a row without headers and body: key, hash and index entries. */
const ROW_BYTES = 512
/** The time after which the number of stored bytes of an organization is read again. */
const FRESH_MS = 60_000
const MAX_REMEMBERED = 10_000

export interface IdempotentRequest {
  owner: string
  /** The id of the organization, or '' for the operator. */
  organizationId: string
  key: string
  /** SHA-256 of method, path and the bytes of the body. A key may be reused only for an identical request. */
  requestHash: Buffer
}

const headersSchema = z.record(z.string(), z.string())

/** Returns the key and the hash of a request, or null without a key. Throws INVALID_REQUEST for a malformed key. */
export function idempotentRequest(
  { owner, organizationId }: { owner: string; organizationId: string },
  key: string | undefined,
  request: { method: string; path: string; bodyHash: Buffer | null },
): IdempotentRequest | null {
  if (key === undefined) return null
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new ApiError(
      'INVALID_REQUEST',
      `The header Idempotency-Key must have 1 to 255 printable ASCII characters without spaces; got ${key.length} characters.`,
    )
  const head = `${request.method} ${request.path}\n`
  return {
    owner,
    organizationId,
    key,
    requestHash: createHash('sha256')
      .update(head)
      .update(request.bodyHash ?? '')
      .digest(),
  }
}

/**
 * Returns the stored response of the request, or null for the first request with the key. Throws IDEMPOTENCY_KEY_IN_USE while another
 * request with the key runs, and IDEMPOTENCY_KEY_REUSED when the key belongs to a different request.
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

/** Stores the response. The body is stored as a JSON string, because a machine id in it may contain NUL, which jsonb rejects. */
export async function storeResponse(db: Db, request: IdempotentRequest, response: WireResponse): Promise<void> {
  const { owner, key, organizationId } = request
  const headers = JSON.stringify(response.headers)
  const body = JSON.stringify(response.body)
  const row = {
    requestHash: request.requestHash,
    status: response.status,
    headers,
    body,
    organizationId: organizationId === '' ? null : organizationId,
    bytes: ROW_BYTES + Buffer.byteLength(headers) + Buffer.byteLength(body),
    createdAt: sql<Date>`now()`,
  }
  await db
    .insertInto('idempotencyKeys')
    .values({ owner, key, ...row })
    .onConflict((conflict) => conflict.columns(['owner', 'key']).doUpdateSet(row))
    .execute()
}

/** Limits the bytes that an organization stores (docs/api.md#m2). Each process has one instance. */
export class StoredBytes {
  readonly #maxBytes: number
  /** The number of stored bytes of each organization, and the time until which this number is used, in the order of the reads. */
  readonly #read = new Map<string, { bytes: number; freshUntilMs: number }>()

  constructor(maxBytes: number = MAX_BYTES) {
    this.#maxBytes = maxBytes
  }

  /** Throws RATE_LIMITED when the organization has reached its limit. */
  async requireSpace(db: Db, { organizationId }: IdempotentRequest): Promise<void> {
    if (organizationId === '' || (await this.#bytesOf(db, organizationId)) < this.#maxBytes) return
    const detail =
      'The responses stored for the Idempotency-Key headers of the last 7 days have reached the limit of the organization. ' +
      'Send the request without this header, or retry later.'
    throw new ApiError('RATE_LIMITED', detail, { headers: { 'retry-after': '3600' } })
  }

  /**
   * Returns the number of stored bytes at the last read, which is at most a minute old. Responses stored since that read are not counted.
   */
  async #bytesOf(db: Db, organizationId: string): Promise<number> {
    const nowMs = Date.now()
    const known = this.#read.get(organizationId)
    if (known && known.freshUntilMs > nowMs) return known.bytes
    const { bytes } = await db
      .selectFrom('idempotencyKeys')
      .select(sql<number>`coalesce(sum(bytes), 0)::bigint`.as('bytes'))
      .where('organizationId', '=', organizationId)
      .where('createdAt', '>', sql<Date>`now() - ${RETENTION}`)
      .executeTakeFirstOrThrow()
    this.#read.delete(organizationId)
    this.#read.set(organizationId, { bytes, freshUntilMs: nowMs + FRESH_MS })
    for (const oldest of this.#read.keys()) {
      if (this.#read.size <= MAX_REMEMBERED) break
      this.#read.delete(oldest)
    }
    return bytes
  }
}
