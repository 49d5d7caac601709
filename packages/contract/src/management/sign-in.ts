/** Sign-in of people: sessions, invitations, passkeys and OpenID Connect (docs/api.md#a5, docs/api.md#a6, docs/api.md#a7). */

import { z } from 'zod'

import { email, EXAMPLE_ID, name, timestamp } from './common.ts'
import { member } from './credentials.ts'
import { operations } from './operations.ts'
import { organization } from './organizations.ts'

const secret = z.string().max(512)

/** A message of the Web Authentication API in JSON. The library that verifies the message validates its members. */
const webAuthnJson = z.record(z.string(), z.unknown())

const signInMethod = z.enum(['INVITATION', 'ACCESS_TOKEN', 'PASSKEY', 'OPERATOR_TOKEN', 'OPENID']).meta({
  description: 'The method by which the session was opened.',
  example: 'PASSKEY',
})
export type SignInMethod = z.infer<typeof signInMethod>

export const createSession = z
  .strictObject({
    token: secret.optional().meta({
      description: 'A personal access token, or the operator token.',
      example: 'kwp_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    invitation: secret.optional().meta({
      description: 'The secret of an invitation. It works once.',
      example: 'kwi_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    passkey: webAuthnJson.optional().meta({
      description: "The browser's response to the options of a sign-in.",
      example: { id: 'bGFwdG9w', rawId: 'bGFwdG9w', type: 'public-key', response: {} },
    }),
    openid: z
      .strictObject({
        organizationId: z.uuid().meta({ description: 'The organization to sign in to.', example: EXAMPLE_ID }),
      })
      .optional()
      .meta({
        description:
          'Signs in with the e-mail address that `POST /sessions/openid-identity` has verified for this browser.',
      }),
  })
  .refine((value) => Object.values(value).filter((one) => one !== undefined).length === 1, {
    message: 'must have exactly one of token, invitation, passkey and openid',
  })
  .meta({ example: { token: 'kwp_0123456789abcdefghijABCDEFGHIJ2Xk9Qa' } })

export const session = z
  .object({
    id: z.uuid().meta({ description: 'The id of the session.', example: EXAMPLE_ID }),
    method: signInMethod,
    isCurrent: z.boolean().meta({ description: 'Whether this session authenticated the request.', example: true }),
    createdAt: timestamp('The time at which the session was opened.'),
    lastUsedAt: timestamp('The approximate time of the last use.'),
    expiresAt: timestamp('The latest time at which the session ends.'),
  })
  .meta({ id: 'Session', description: 'A session of a person in a browser.' })
export type Session = z.infer<typeof session>
export const sessionList = z
  .object({ data: z.array(session).meta({ description: 'The open sessions, newest first.' }) })
  .meta({ id: 'Sessions', description: 'The open sessions of a member.' })

export const me = z
  .object({
    kind: z.enum(['OPERATOR', 'MEMBER', 'TOKEN']).meta({
      description: 'The type of the caller. `MEMBER` stands for a session or a personal access token of a member.',
      example: 'MEMBER',
    }),
    organization: organization.nullable().meta({ description: 'The organization; null for the operator.' }),
    member: z
      .object({ id: z.uuid().meta({ description: 'The id of the member.', example: EXAMPLE_ID }), email })
      .nullable()
      .meta({ description: 'The member; null for the operator and for a management token.' }),
    permissions: z
      .array(z.string())
      .meta({ description: 'The permissions of the caller.', example: ['licenses.read', 'licenses.write'] }),
    session: session.nullable().meta({ description: 'The session; null for a request with a secret.' }),
  })
  .meta({ id: 'Me', description: 'The caller that sends the request.' })
export type Me = z.infer<typeof me>

export const invitation = z
  .object({
    secret: z.string().optional().meta({
      description: 'The secret of the invitation. It is shown once, and a replayed response omits it.',
      example: 'kwi_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    path: z.string().optional().meta({
      description: 'The path of the link to send to the member. It is shown once, and a replayed response omits it.',
      example: '/console/invitation#kwi_0123456789abcdefghijABCDEFGHIJ2Xk9Qa',
    }),
    expiresAt: timestamp('The time at which the invitation expires.'),
  })
  .meta({ id: 'Invitation', description: 'A one-time invitation of a member to sign in.' })
export type Invitation = z.infer<typeof invitation>

export const createdMember = member
  .extend({ invitation: invitation.optional() })
  .meta({ id: 'CreatedMember', description: 'A new member with an invitation.' })

export const passkey = z
  .object({
    id: z.uuid().meta({ description: 'The id of the passkey.', example: EXAMPLE_ID }),
    name: name.meta({ description: 'The name of the passkey, chosen by the member.', example: 'work laptop' }),
    createdAt: timestamp('The time of registration.'),
    lastUsedAt: timestamp('The time of the last sign-in with the passkey.').nullable(),
  })
  .meta({ id: 'Passkey', description: 'A passkey of a member.' })
export type Passkey = z.infer<typeof passkey>
export const passkeyList = z
  .object({ data: z.array(passkey).meta({ description: 'The passkeys, newest first.' }) })
  .meta({ id: 'Passkeys', description: 'The passkeys of a member.' })
export const createPasskey = z.strictObject({
  name: name.meta({ description: 'The name of the passkey, chosen by the member.', example: 'work laptop' }),
  response: webAuthnJson.meta({
    description: "The browser's response to the options of a registration.",
    example: { id: 'bGFwdG9w', rawId: 'bGFwdG9w', type: 'public-key', response: {} },
  }),
})

const passkeyOptions = z
  .object({
    options: webAuthnJson.meta({
      description: 'The options for `navigator.credentials` as JSON.',
      example: { challenge: 'bGFwdG9w', rpId: 'keyward.example.com', userVerification: 'required' },
    }),
  })
  .meta({
    id: 'PasskeyOptions',
    description: 'The options of a passkey request. The challenge is valid for five minutes.',
  })

export const signInMethods = z
  .object({
    openid: z
      .object({ label: z.string().meta({ description: 'The text of the button.', example: 'Single sign-on' }) })
      .nullable()
      .meta({ description: 'Sign-in with OpenID Connect; null when it is not configured.' }),
  })
  .meta({ id: 'SignInMethods', description: 'The methods of signing in that the operator has configured.' })

export const openidOptions = z
  .object({
    url: z.url({ protocol: /^https?$/ }).meta({
      description: 'The address of the identity provider to which the browser goes.',
      example: 'https://login.example.com/authorize?client_id=keyward&response_type=code',
    }),
  })
  .meta({
    id: 'OpenIdOptions',
    description: 'The beginning of a sign-in with OpenID Connect. It is valid for ten minutes.',
  })

export const createOpenidIdentity = z.strictObject({
  response: z.string().min(1).max(8_192).meta({
    description: 'The query of the address to which the identity provider has redirected the browser.',
    example: 'code=SplxlOBeZQQYbYS6WxSbIA&state=af0ifjsldkj',
  }),
})
export const openidIdentity = z
  .object({
    email: z.string().meta({ description: 'The verified e-mail address.', example: 'ada@example.com' }),
    organizations: z
      .array(
        z.object({
          id: z.uuid().meta({ description: 'The id of the organization.', example: EXAMPLE_ID }),
          name: name.meta({ description: 'The name of the organization.', example: 'Acme' }),
        }),
      )
      .meta({ description: 'The organizations with a member of this e-mail address, at least one.' }),
  })
  .meta({ id: 'OpenIdIdentity', description: 'A person whom the identity provider has verified.' })
export type OpenidIdentity = z.infer<typeof openidIdentity>

export const sessions = operations({
  readMe: { route: 'GET /me', needs: 'person', returns: me },
  listMySessions: { route: 'GET /me/sessions', needs: 'person', returns: sessionList },
  endMySession: { route: 'DELETE /me/sessions/{id}', needs: 'person' },
  createSignInOptions: { route: 'POST /sessions/passkey-options', needs: 'nothing', returns: passkeyOptions },
  createSession: { route: 'POST /sessions', needs: 'nothing', body: createSession, returns: me, creates: true },
  signOut: { route: 'DELETE /sessions/current', needs: 'person' },
  listSessions: { route: 'GET /members/{id}/sessions', needs: 'credentials.write', returns: sessionList },
  endSessions: { route: 'DELETE /members/{id}/sessions', needs: 'credentials.write' },
})

export const openid = operations({
  readSignInMethods: { route: 'GET /sessions/methods', needs: 'nothing', returns: signInMethods },
  createOpenidOptions: { route: 'POST /sessions/openid-options', needs: 'nothing', returns: openidOptions },
  createOpenidIdentity: {
    route: 'POST /sessions/openid-identity',
    needs: 'nothing',
    body: createOpenidIdentity,
    returns: openidIdentity,
  },
})

export const passkeys = operations({
  listMyPasskeys: { route: 'GET /me/passkeys', needs: 'token', returns: passkeyList },
  createPasskeyOptions: { route: 'POST /me/passkeys/options', needs: 'token', returns: passkeyOptions },
  createPasskey: { route: 'POST /me/passkeys', needs: 'token', body: createPasskey, returns: passkey, creates: true },
  deletePasskey: { route: 'DELETE /me/passkeys/{id}', needs: 'token' },
})
