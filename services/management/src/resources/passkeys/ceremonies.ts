/**
 * Implements the two ceremonies of passkeys (Web Authentication), registration and sign-in. The server issues a challenge, the
 * authenticator signs it, and the challenge is accepted once. The relying party ID is the host name of the site, so a passkey works only on
 * that host name.
 */

import { randomBytes } from 'node:crypto'

import type {
  AuthenticationResponseJSON,
  AuthenticatorTransport,
  RegistrationResponseJSON,
} from '@simplewebauthn/server'
import { sql } from 'kysely'
import { z } from 'zod'

import type { Db } from '../../context.ts'
import { ApiError, invalid } from '../../http/problem.ts'
import type { Site } from '../../http/site.ts'

/** Loads the library at its first use, because its modules are a fifth of what the start of the service would load. */
const library = () => import('@simplewebauthn/server')

const CHALLENGE_BYTES = 32
const CHALLENGE_MINUTES = 5
const NAME = 'Keyward'

const TRANSPORTS = ['ble', 'cable', 'hybrid', 'internal', 'nfc', 'smart-card', 'usb'] as const
const transports = z.array(z.enum(TRANSPORTS).or(z.string()))

function isTransport(name: string): name is AuthenticatorTransport {
  return TRANSPORTS.some((known) => known === name)
}

const base64url = z
  .string()
  .max(4_096)
  .regex(/^[A-Za-z0-9_-]+$/)
const common = {
  id: base64url,
  rawId: base64url,
  type: z.literal('public-key'),
  clientExtensionResults: z.record(z.string(), z.unknown()).default({}),
}
const registrationResponse = z.object({
  ...common,
  response: z.object({
    clientDataJSON: base64url,
    attestationObject: z.string().max(16_384),
    transports: transports.max(10).optional(),
  }),
})
const authenticationResponse = z.object({
  ...common,
  response: z.object({
    clientDataJSON: base64url,
    authenticatorData: base64url,
    signature: base64url,
    userHandle: base64url.optional(),
  }),
})

/**
 * Returns the id and the origins of the relying party. Throws INVALID_REQUEST when browsers offer no passkeys for the address of the site.
 */
function relyingParty(site: Site | null): { id: string; origins: string[] } {
  const hostname = site?.hostname ?? ''
  if (site === null || hostname === '' || /^[0-9.]+$|^\[/.test(hostname))
    throw new ApiError(
      'INVALID_REQUEST',
      'Passkeys require a host name instead of an IP address. On this machine, open the console at localhost.',
    )
  return { id: hostname, origins: [...site.origins] }
}

async function newChallenge(db: Db, memberId: string | null): Promise<Buffer> {
  const challenge = randomBytes(CHALLENGE_BYTES)
  await sql`
    insert into passkey_challenges (challenge, member_id, expires_at)
    values (${challenge}, ${memberId}, now() + ${CHALLENGE_MINUTES} * interval '1 minute')`.execute(db)
  return challenge
}

/** Returns a function that accepts each challenge once, if the challenge was issued for the member and has not expired. */
function acceptOnce(db: Db, memberId: string | null): (challenge: string) => Promise<boolean> {
  return async (challenge) => {
    const { numDeletedRows } = await db
      .deleteFrom('passkeyChallenges')
      .where('challenge', '=', Buffer.from(challenge, 'base64url'))
      .where('expiresAt', '>', sql<Date>`now()`)
      .where(({ eb }) => (memberId === null ? eb('memberId', 'is', null) : eb('memberId', '=', memberId)))
      .executeTakeFirst()
    return numDeletedRows === 1n
  }
}

interface RegisteringMember {
  id: string
  email: string
  /** The credential ids of the member's passkeys. The browser creates no second passkey on an authenticator that has one of them. */
  registered: readonly Buffer[]
}

export async function registrationOptions(db: Db, site: Site | null, member: RegisteringMember) {
  const { id: rpID } = relyingParty(site)
  const { generateRegistrationOptions } = await library()
  return generateRegistrationOptions({
    rpName: NAME,
    rpID,
    userName: member.email,
    userID: new Uint8Array(Buffer.from(member.id)),
    challenge: new Uint8Array(await newChallenge(db, member.id)),
    attestationType: 'none',
    excludeCredentials: member.registered.map((id) => ({ id: id.toString('base64url') })),
    authenticatorSelection: { residentKey: 'required', userVerification: 'required' },
  })
}

interface RegisteredPasskey {
  credentialId: Buffer
  publicKey: Buffer
  counter: number
  transports: string[]
}

/** Verifies the browser's response to `registrationOptions`. Throws INVALID_REQUEST. */
export async function verifyRegistration(
  db: Db,
  site: Site | null,
  memberId: string,
  sent: unknown,
): Promise<RegisteredPasskey> {
  const { id: expectedRPID, origins } = relyingParty(site)
  const parsed = registrationResponse.safeParse(sent)
  if (!parsed.success) throw invalid('#/response', 'must be the JSON form of the credential that the browser returned')
  const { transports: named = [], ...inner } = parsed.data.response
  const known = named.filter(isTransport)
  const response: RegistrationResponseJSON = { ...parsed.data, response: { ...inner, transports: known } }
  const { verifyRegistrationResponse } = await library()
  const verified = await verifyRegistrationResponse({
    response,
    expectedChallenge: acceptOnce(db, memberId),
    expectedOrigin: origins,
    expectedRPID,
    requireUserVerification: true,
  }).catch((error: unknown) => {
    throw refused(error)
  })
  if (!verified.verified) throw refused(null)
  const { id, publicKey, counter } = verified.registrationInfo.credential
  return { credentialId: Buffer.from(id, 'base64url'), publicKey: Buffer.from(publicKey), counter, transports: known }
}

/** Returns the error of a failed verification. Errors of the library become INVALID_REQUEST. Errors of Postgres are returned unchanged. */
function refused(error: unknown): unknown {
  const isOfDatabase = error instanceof Error && 'severity' in error
  return isOfDatabase ? error : invalid('#/response', 'does not match the options that were sent')
}

export async function signInOptions(db: Db, site: Site | null) {
  const { id: rpID } = relyingParty(site)
  const challenge = new Uint8Array(await newChallenge(db, null))
  const { generateAuthenticationOptions } = await library()
  return generateAuthenticationOptions({ rpID, challenge, userVerification: 'required' })
}

/** The member and the organization of a passkey. */
interface PasskeyOwner {
  memberId: string
  organizationId: string
}

/** Returns the credential id in a browser's response, or an empty string. */
export function passkeyIdOf(sent: unknown): string {
  const parsed = authenticationResponse.pick({ id: true }).safeParse(sent)
  return parsed.success ? parsed.data.id : ''
}

/** Verifies the browser's response to `signInOptions`. Returns null unless the response proves possession of a registered passkey. */
export async function verifySignIn(db: Db, site: Site | null, sent: unknown): Promise<PasskeyOwner | null> {
  const { id: expectedRPID, origins } = relyingParty(site)
  const parsed = authenticationResponse.safeParse(sent)
  if (!parsed.success) throw invalid('#/passkey', 'must be the JSON form of the credential that the browser returned')
  const { userHandle, ...inner } = parsed.data.response
  const response: AuthenticationResponseJSON = {
    ...parsed.data,
    response: { ...inner, ...(userHandle !== undefined && { userHandle }) },
  }
  const passkey = await db
    .selectFrom('passkeys')
    .selectAll()
    .where('credentialId', '=', Buffer.from(response.id, 'base64url'))
    .forUpdate()
    .executeTakeFirst()
  if (!passkey) return null
  const { counter, publicKey } = passkey
  const { verifyAuthenticationResponse } = await library()
  const verified = await verifyAuthenticationResponse({
    response,
    expectedChallenge: acceptOnce(db, null),
    expectedOrigin: origins,
    expectedRPID,
    requireUserVerification: true,
    credential: { id: response.id, publicKey: new Uint8Array(publicKey), counter },
  }).catch((error: unknown) => {
    if (refused(error) === error) throw error
    return null
  })
  if (!verified?.verified) return null
  const { newCounter } = verified.authenticationInfo
  await db
    .updateTable('passkeys')
    .set({ counter: newCounter, lastUsedAt: new Date() })
    .where('id', '=', passkey.id)
    .execute()
  return { memberId: passkey.memberId, organizationId: passkey.organizationId }
}
