/**
 * `Idempotency-Key`: the answer of a creating request is kept for a day in the very transaction that made the change, so that
 * there is never a change without its answer nor an answer without its change. Secrets are cut out before anything is stored.
 * An advisory lock, held for the transaction, is what "still running" means; it ends with the process that held it.
 */
import { createHash } from 'node:crypto'

import { sql } from 'kysely'
import { z } from 'zod'

import type { Db } from './context.ts'
import { Refusal } from './problem.ts'

const lifetime = sql`interval '24 hours'`

/** An answer as it goes over the wire. */
export interface WireAnswer {
  status: number
  headers: Record<string, string>
  /** '' for none. */
  body: string
}

export interface IdempotentRequest {
  owner: string
  key: string
  requestHash: Buffer
}

const headersSchema = z.record(z.string(), z.string())

/** The request's key and what it is compared by; null when no key was sent. Refuses a key that is too long or not ASCII. */
export function idempotentRequest(
  owner: string,
  key: string | undefined,
  request: { method: string; path: string; body: unknown },
): IdempotentRequest | null {
  if (key === undefined) return null
  if (!/^[\x21-\x7e]{1,255}$/.test(key))
    throw new Refusal('INVALID_REQUEST', 'The header Idempotency-Key takes 1 to 255 printable ASCII characters.')
  const text = JSON.stringify([request.method, request.path, request.body ?? null])
  return { owner, key, requestHash: createHash('sha256').update(text).digest() }
}

/** The answer given before, or null for the first time. Refuses a key that is in use or was used for another request. */
export async function findAnswer(db: Db, request: IdempotentRequest): Promise<WireAnswer | null> {
  const { owner, key } = request
  const { rows } = await sql<{ locked: boolean }>`
    select pg_try_advisory_xact_lock(hashtextextended(${`${owner}\n${key}`}, 0)) as locked`.execute(db)
  if (!rows[0]?.locked) throw new Refusal('IDEMPOTENCY_KEY_IN_USE', undefined, { headers: { 'retry-after': '1' } })
  const kept = await db
    .selectFrom('idempotencyKeys')
    .select(['requestHash', 'status', 'headers', 'body'])
    .where('owner', '=', owner)
    .where('key', '=', key)
    .where('createdAt', '>', sql<Date>`now() - ${lifetime}`)
    .executeTakeFirst()
  if (!kept) return null
  if (!request.requestHash.equals(kept.requestHash)) throw new Refusal('IDEMPOTENCY_KEY_REUSED')
  return {
    status: kept.status ?? 500,
    headers: { ...headersSchema.parse(kept.headers), 'idempotency-replayed': 'true' },
    body: z.string().parse(kept.body),
  }
}

/** `body` goes in as text inside jsonb: a machine id in it may hold NUL, which jsonb itself cannot. */
export async function keepAnswer(db: Db, request: IdempotentRequest, answer: WireAnswer): Promise<void> {
  const row = {
    requestHash: request.requestHash,
    status: answer.status,
    headers: JSON.stringify(answer.headers),
    body: JSON.stringify(answer.body),
    createdAt: sql<Date>`now()`,
  }
  await db
    .insertInto('idempotencyKeys')
    .values({ owner: request.owner, key: request.key, ...row })
    .onConflict((conflict) => conflict.columns(['owner', 'key']).doUpdateSet(row))
    .execute()
}

/** Forgets what is older than a day. */
export async function forgetOldAnswers(db: Db): Promise<void> {
  await db
    .deleteFrom('idempotencyKeys')
    .where('createdAt', '<', sql<Date>`now() - ${lifetime}`)
    .execute()
}
