/**
 * Authenticates callers (docs/api.md#a1) and authorizes their requests (docs/api.md#a2). Every credential except the operator token is read
 * from Postgres for each request, so a revocation and the withdrawal of a permission take effect at the next request.
 */

import { timingSafeEqual } from 'node:crypto'

import { type Actor, type Permission, permission as permissionSchema } from '@keyward/contract'
import type { Needs } from '@keyward/contract/operations'
import { hashSecret, parseSecret } from '@keyward/database'
import { z } from 'zod'

import type { CallerCredential, Db, PortalAccess } from '../context.ts'
import { ApiError } from '../http/problem.ts'

/**
 * A stored actor whose fields are copied into another one. It is not validated further, because a process of a later version may have stored
 * a type that this version does not know.
 */
export const storedActor = z.custom<Actor>((value) => typeof value === 'object' && value !== null)

export interface Caller {
  kind: 'operator' | 'vendor' | 'apiKey' | 'customer' | 'stranger'
  /** The owner of rate limits and idempotency keys: the id of the credential or session, `operator`, or `stranger`. */
  owner: string
  /** The id of the organization, or '' for the operator and for a stranger. */
  organizationId: string
  permissions: ReadonlySet<Permission>
  actor: Actor
  credential: CallerCredential
  /** Whether the operator has suspended the organization. */
  isSuspended: boolean
  /** The session that authenticated the request, or null when a secret did. */
  session: { id: string } | null
  /** The session of a customer, or null for every other caller. */
  portal: PortalAccess | null
}

export function unauthenticated(detail: string): ApiError {
  return new ApiError('UNAUTHENTICATED', detail, { headers: { 'www-authenticate': 'Bearer realm="keyward"' } })
}

export function permissionsFrom(names: readonly string[]): Set<Permission> {
  return new Set(names.flatMap((name) => permissionSchema.safeParse(name).data ?? []))
}

/** Returns the permissions that both a personal access token and its member have (docs/api.md#a3). */
export function intersection(token: ReadonlySet<Permission>, member: ReadonlySet<Permission>): Set<Permission> {
  return new Set([...token].filter((name) => member.has(name)))
}

async function findCredential(db: Db, secretHash: Uint8Array) {
  return db
    .selectFrom('credentials')
    .innerJoin('organizations', 'organizations.id', 'credentials.organizationId')
    .leftJoin('members', 'members.id', 'credentials.memberId')
    .select([
      'credentials.id',
      'credentials.organizationId',
      'credentials.kind',
      'credentials.name',
      'credentials.permissions',
      'credentials.memberId',
      'credentials.productId',
      'credentials.expiresAt',
      'credentials.revokedAt',
      'credentials.createdBy',
      'credentials.madeByMember',
      'members.permissions as memberPermissions',
      'organizations.suspendedAt',
    ])
    .where('secretHash', '=', Buffer.from(secretHash))
    .executeTakeFirst()
}

type CredentialRow = NonNullable<Awaited<ReturnType<typeof findCredential>>>

/**
 * Returns the field `issuedBy` of the actor of a member's access token, or of the session that the token opened. It names the creator of
 * the token, who has seen the secret, unless the member created the token.
 */
export function issuerOf(memberId: string, createdBy: unknown): Pick<Actor, 'issuedBy'> {
  const maker = storedActor.nullable().parse(createdBy)
  if (maker === null || maker.memberId === memberId) return {}
  const { issuedBy: _, ...issuedBy } = maker
  return { issuedBy }
}

function actorOf({ kind, id, name, memberId, createdBy }: CredentialRow): Actor {
  if (memberId === null) return { type: kind, id, name }
  return { type: kind, id, name, memberId, ...issuerOf(memberId, createdBy) }
}

/** Returns the secret of an `Authorization: Bearer` header, or undefined for any other value. */
export function bearerSecret(authorization: string | undefined): string | undefined {
  return /^Bearer +([\x21-\x7e]{1,512}) *$/i.exec(authorization ?? '')?.[1]
}

/** Returns whether the hash is one of the hashes. All hashes have equal lengths, and the time does not depend on the secret. */
export function isOneOf(hashes: readonly Uint8Array[], hash: Uint8Array): boolean {
  return hashes.map((known) => timingSafeEqual(known, hash)).includes(true)
}

const REJECTED = 'The credential is unknown, revoked or expired. Send a valid one.'

export function operatorCaller(): Caller & { kind: 'operator' } {
  return {
    kind: 'operator',
    owner: 'operator',
    organizationId: '',
    permissions: new Set(),
    actor: { type: 'OPERATOR' },
    credential: { id: 'operator', expiresAt: null, productId: null, madeByMember: null },
    isSuspended: false,
    session: null,
    portal: null,
  }
}

/** Returns the caller of an endpoint that needs no credential. */
export function strangerCaller(): Caller {
  return { ...operatorCaller(), kind: 'stranger', owner: 'stranger', actor: { type: 'SYSTEM' } }
}

/** The hash of a secret, by which Postgres finds the credential. */
export interface Credential {
  kind: 'credential'
  secretHash: Uint8Array
}

/**
 * Returns the operator, or the hash of the secret, for an `Authorization` header. `operatorHashes` are the hashes of the operator tokens.
 * Reads no table. Throws UNAUTHENTICATED.
 */
export function readCredential(
  operatorHashes: readonly Uint8Array[],
  authorization: string | undefined,
): Credential | (Caller & { kind: 'operator' }) {
  const secret = bearerSecret(authorization)
  if (/^Bearer +Bearer\b/i.test(authorization ?? ''))
    throw unauthenticated(
      'The header has "Bearer" twice. Send "Authorization: Bearer <secret>", with the secret alone.',
    )
  if (secret === undefined) throw unauthenticated('Send the header "Authorization: Bearer <secret>".')
  const secretHash = hashSecret(secret)
  if (isOneOf(operatorHashes, secretHash)) return operatorCaller()
  if (!parseSecret(secret)) throw unauthenticated(REJECTED)
  return { kind: 'credential', secretHash }
}

/** Returns the caller whose credential has this hash. Throws UNAUTHENTICATED. */
export async function findCaller(db: Db, secretHash: Uint8Array): Promise<Caller> {
  const row = await findCredential(db, secretHash)
  if (!row || row.revokedAt !== null) throw unauthenticated(REJECTED)
  if (row.expiresAt !== null && row.expiresAt.getTime() <= Date.now()) throw unauthenticated(REJECTED)
  const own = permissionsFrom(row.permissions)
  const permissions =
    row.kind === 'ACCESS_TOKEN' ? intersection(own, permissionsFrom(row.memberPermissions ?? [])) : own
  return {
    kind: row.kind === 'API_KEY' ? 'apiKey' : 'vendor',
    owner: row.id,
    organizationId: row.organizationId,
    permissions,
    actor: actorOf(row),
    credential: {
      id: row.id,
      expiresAt: row.expiresAt,
      productId: row.productId,
      madeByMember: row.madeByMember ?? row.memberId,
    },
    isSuspended: row.suspendedAt !== null,
    session: null,
    portal: null,
  }
}

const CALLERS: Record<Caller['kind'], string> = {
  operator: 'the operator token',
  vendor: 'a management token or access token',
  apiKey: 'an API key',
  customer: 'a session of the portal',
  stranger: 'no credential',
}

function requireKind(caller: Caller, required: Caller['kind']): void {
  if (caller.kind === required) return
  const got = CALLERS[caller.kind]
  throw new ApiError('FORBIDDEN', `This endpoint requires ${CALLERS[required]}; the request was sent with ${got}.`)
}

/** Throws ORGANIZATION_SUSPENDED or FORBIDDEN. The detail of FORBIDDEN names the kind of credential or the permission that is required. */
export function authorize(needs: Needs, caller: Caller): void {
  if (needs === 'nothing' || needs === 'signature') return
  if (needs === 'person') {
    if (caller.kind === 'apiKey') requireKind(caller, 'vendor')
    return
  }
  if (needs === 'operator' || needs === 'apiKey') return requireKind(caller, needs)
  if (needs === 'portal') return requireKind(caller, 'customer')
  requireKind(caller, 'vendor')
  if (caller.isSuspended)
    throw new ApiError(
      'ORGANIZATION_SUSPENDED',
      'The operator has suspended the access of this organization to the management API. Licenses are still validated.',
    )
  if (needs === 'token' || caller.permissions.has(needs)) return
  throw new ApiError('FORBIDDEN', `This endpoint requires the permission ${needs}, which the credential does not have.`)
}
