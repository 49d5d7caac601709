/**
 * Who calls: the operator, a vendor's credential, or an app's API key. Nothing is cached, so that a revoked credential and a
 * permission taken from a member count at the very next call.
 */
import { createHash, timingSafeEqual } from 'node:crypto'

import { type Actor, type Permission, permission as permissionSchema } from '@keyward/contract'
import { hashSecret, parseSecret } from '@keyward/database'

import type { Db } from './context.ts'
import type { Access } from './endpoint.ts'
import { Refusal } from './problem.ts'

export interface Caller {
  kind: 'operator' | 'vendor' | 'apiKey'
  /** What rate limits and idempotency keys are kept for: the credential's id, or `operator`. */
  owner: string
  /** '' for the operator. */
  organizationId: string
  permissions: ReadonlySet<Permission>
  actor: Actor
}

function sha256(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}

function unauthenticated(detail: string): Refusal {
  return new Refusal('UNAUTHENTICATED', detail, { headers: { 'www-authenticate': 'Bearer realm="keyward"' } })
}

function permissionsFrom(names: readonly string[]): Set<Permission> {
  return new Set(names.flatMap((name) => permissionSchema.safeParse(name).data ?? []))
}

/** A personal access token can do what both it and its member are permitted. */
function both(token: ReadonlySet<Permission>, member: ReadonlySet<Permission>): Set<Permission> {
  return new Set([...token].filter((name) => member.has(name)))
}

async function findCredential(db: Db, secretHash: Uint8Array) {
  return db
    .selectFrom('credentials')
    .leftJoin('members', 'members.id', 'credentials.memberId')
    .select([
      'credentials.id',
      'credentials.organizationId',
      'credentials.kind',
      'credentials.name',
      'credentials.permissions',
      'credentials.memberId',
      'credentials.expiresAt',
      'credentials.revokedAt',
      'members.permissions as memberPermissions',
    ])
    .where('secretHash', '=', Buffer.from(secretHash))
    .executeTakeFirst()
}

/** The secret in an `Authorization` header; undefined for anything else. */
export function bearerSecret(authorization: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1]
}

/** The caller behind an `Authorization` header; refuses with UNAUTHENTICATED. */
export async function authenticate(db: Db, operatorToken: string, authorization: string | undefined): Promise<Caller> {
  const secret = bearerSecret(authorization)
  if (secret === undefined) throw unauthenticated('Send the header "Authorization: Bearer <secret>".')
  // Digests have one length, so that the comparison tells nothing about the token.
  if (timingSafeEqual(sha256(secret), sha256(operatorToken)))
    return {
      kind: 'operator',
      owner: 'operator',
      organizationId: '',
      permissions: new Set(),
      actor: { type: 'OPERATOR' },
    }
  const unknown = unauthenticated('The credential is unknown, revoked or expired.')
  if (!parseSecret(secret)) throw unknown
  const row = await findCredential(db, hashSecret(secret))
  if (!row || row.revokedAt !== null) throw unknown
  if (row.expiresAt !== null && row.expiresAt.getTime() <= Date.now()) throw unknown
  const own = permissionsFrom(row.permissions)
  const permissions = row.kind === 'ACCESS_TOKEN' ? both(own, permissionsFrom(row.memberPermissions ?? [])) : own
  return {
    kind: row.kind === 'API_KEY' ? 'apiKey' : 'vendor',
    owner: row.id,
    organizationId: row.organizationId,
    permissions,
    actor: { type: row.kind, id: row.id, name: row.name, ...(row.memberId !== null && { memberId: row.memberId }) },
  }
}

/** Refuses with FORBIDDEN, naming what is missing. */
export function authorize(access: Access, caller: Caller): void {
  switch (access.kind) {
    case 'operator':
      if (caller.kind !== 'operator') throw new Refusal('FORBIDDEN', 'Only the operator token may do this.')
      return
    case 'apiKey':
      if (caller.kind !== 'apiKey')
        throw new Refusal('FORBIDDEN', 'This endpoint takes an API key of the organization.')
      return
    case 'vendor':
      if (caller.kind === 'apiKey')
        throw new Refusal('FORBIDDEN', 'An API key cannot be used here; use a management token.')
      if (caller.kind === 'operator')
        throw new Refusal('FORBIDDEN', 'The operator token cannot be used here; use a management token.')
      if (access.permission !== 'any' && !caller.permissions.has(access.permission))
        throw new Refusal('FORBIDDEN', `The permission ${access.permission} is missing.`)
      return
    default:
      access satisfies never
  }
}
