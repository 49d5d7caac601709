/**
 * Prevents lost updates (docs/api.md#m18). The version of a resource is its `updatedAt`, which the database increases with every change.
 * Responses contain it as `ETag`. A change with `If-Match` is made only if the resource still has one of the given versions.
 */

import { sql } from 'kysely'

import type { Db } from '../context.ts'
import { ApiError } from '../http/problem.ts'
import type { Versioned } from './implement.ts'

/** Returns the ETag of a representation, or null when its resource has no version. */
export function etagOf(representation: unknown): string | null {
  if (typeof representation !== 'object' || representation === null || !('updatedAt' in representation)) return null
  return `"${String(representation.updatedAt)}"`
}

/**
 * Returns the entity tags of `If-Match`, or null for `*`, which every existing resource matches. A prefix `W/` is ignored, because proxies
 * that compress responses add it. Throws INVALID_REQUEST for a malformed header.
 */
function parseIfMatch(header: string): readonly string[] | null {
  if (header.trim() === '*') return null
  const tags = header.split(',').map((tag) => tag.trim().replace(/^W\//, ''))
  if (tags.every((tag) => /^"[^"]*"$/.test(tag))) return tags
  throw new ApiError(
    'INVALID_REQUEST',
    'The header If-Match must be * or a list of ETags, such as "2026-11-20T09:30:00.000Z" with its quotes.',
  )
}

/**
 * Locks the row of the resource until the transaction ends, so that its version cannot change between the comparison and the change.
 * Throws VERSION_MISMATCH with the current representation, which `read` returns.
 */
export async function requireVersion(
  { table }: Versioned,
  { db, organizationId, id }: { db: Db; organizationId: string; id: string },
  header: string,
  read: () => Promise<unknown>,
): Promise<void> {
  const tags = parseIfMatch(header)
  const owner = table === 'organizations' ? sql`` : sql`and organization_id = ${organizationId}`
  await sql`select from ${sql.table(table)} where id = ${id} ${owner} for no key update`.execute(db)
  const current = await read()
  const etag = etagOf(current)
  if (tags === null || etag === null || tags.includes(etag)) return
  throw new ApiError(
    'VERSION_MISMATCH',
    'The resource was changed after this version was read. Compare the change with `current`, then repeat it with the ETag of this response.',
    { current, headers: { etag } },
  )
}
