/** Tests sessions and invitations (docs/api.md#a5, docs/api.md#a6) as a browser uses them: with a cookie and the header `Origin`. */

import { createdToken } from '@keyward/contract'
import { createdMember, me, sessionList } from '@keyward/contract/management/sign-in'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { createSignInLimiter } from '../../src/admission/sign-in-limits.ts'
import { sessionCookie, sessionSecret, siteOf } from '../../src/http/site.ts'
import { type ApiResponse, type CallOptions, type Harness, operatorToken, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  harness = await startHarness()
  vendor = await createVendor(harness)
})
afterAll(() => harness.close())

type SignedIn = (method: string, path: string, options?: CallOptions) => Promise<ApiResponse>

function cookieOf(response: ApiResponse): string {
  return response.headers.get('set-cookie')?.split(';')[0] ?? ''
}

/** Signs in and returns a caller that behaves like a page of the console. */
async function signIn(body: object, origin: string | null = harness.origin): Promise<SignedIn> {
  const response = await harness.call('POST', 'sessions', { token: null, body })
  expectBody(response, 201, me)
  const cookie = cookieOf(response)
  return (method, path, options = {}) =>
    harness.call(method, path, {
      ...options,
      token: null,
      headers: { cookie, ...(origin !== null && { origin }), ...options.headers },
    })
}

const invited = createdMember.required().extend({ invitation: z.object({ secret: z.string(), path: z.string() }) })
let members = 0

async function addMember(permissions: string[] = ['licenses.read', 'credentials.write']) {
  members += 1
  const body = { email: `member${members}@example.com`, permissions }
  return expectBody(await vendor.call('POST', 'members', { body }), 201, invited)
}

describe('an invitation', () => {
  test('a member signs in with an invitation once', async () => {
    const { id, email, invitation } = await addMember()
    expect(invitation.path).toBe(`/console/invitation#${invitation.secret}`)
    const call = await signIn({ invitation: invitation.secret })
    const caller = expectBody(await call('GET', 'me'), 200, me)
    expect(caller).toMatchObject({ kind: 'MEMBER', member: { id, email }, organization: { id: vendor.id } })
    expect(caller.permissions).toEqual(['licenses.read', 'credentials.write'])
    expect(caller.session).toMatchObject({ method: 'INVITATION', isCurrent: true })
    const again = await harness.call('POST', 'sessions', { token: null, body: { invitation: invitation.secret } })
    expect(outcome(again)).toBe('401 UNAUTHENTICATED')
  })

  test('an invitation is accepted from one of several concurrent requests', async () => {
    const { invitation } = await addMember()
    const body = { invitation: invitation.secret }
    const responses = await Promise.all(
      Array.from({ length: 8 }, () => harness.call('POST', 'sessions', { token: null, body })),
    )
    const statuses = responses.map(({ status }) => status)
    expect(statuses.toSorted((a, b) => a - b)).toEqual([201, ...Array.from({ length: 7 }, () => 401)])
  })

  test('an invitation replaces the previous one, and expires', async () => {
    const { id, invitation } = await addMember()
    const path = `members/${id}/invitation`
    const next = expectBody(await vendor.call('POST', path), 200, invited.shape.invitation)
    const old = await harness.call('POST', 'sessions', { token: null, body: { invitation: invitation.secret } })
    expect(outcome(old)).toBe('401 UNAUTHENTICATED')
    await harness.database.pool.query(`update invitations set expires_at = now() where member_id = $1`, [id])
    const late = await harness.call('POST', 'sessions', { token: null, body: { invitation: next.secret } })
    expect(outcome(late)).toBe('401 UNAUTHENTICATED')
  })

  test('the audit entries of an invited member name the sender of the invitation', async () => {
    const { id, invitation } = await addMember(['products.write'])
    const call = await signIn({ invitation: invitation.secret })
    expect((await call('POST', 'products', { body: { name: 'Studio' } })).status).toBe(201)
    const { rows } = await harness.database.pool.query<{ actor: unknown }>(
      `select actor from audit_log where action = 'product.created' and actor ->> 'memberId' = $1`,
      [id],
    )
    expect(rows[0]?.actor).toMatchObject({ type: 'MEMBER', id, issuedBy: { type: 'MANAGEMENT_TOKEN' } })
  })

  test('a credential with fewer permissions than the member cannot send an invitation', async () => {
    const { id } = await addMember(['licenses.write', 'credentials.write'])
    const body = { name: 'small', permissions: ['credentials.write'] }
    const { secret } = expectBody(await vendor.call('POST', 'tokens', { body }), 201, createdToken.required())
    expect(outcome(await harness.as(secret)('POST', `members/${id}/invitation`))).toBe('403 FORBIDDEN')
  })

  test('returns 404 for invitations and sessions of members of another organization', async () => {
    const { id } = await addMember()
    const stranger = await createVendor(harness)
    expect(outcome(await stranger.call('POST', `members/${id}/invitation`))).toBe('404 NOT_FOUND')
    expect(outcome(await stranger.call('GET', `members/${id}/sessions`))).toBe('404 NOT_FOUND')
    expect(outcome(await stranger.call('DELETE', `members/${id}/sessions`))).toBe('404 NOT_FOUND')
  })
})

const managing = ['licenses.read', 'credentials.write']

/** Creates two members, and signs the first one in. */
async function twoMembers() {
  const [ada, bob] = [await addMember(managing), await addMember(managing)]
  return { ada, bob, callOfAda: await signIn({ invitation: ada.invitation.secret }) }
}

const deletion = z.object({ data: z.array(z.object({ changes: z.unknown() })) })

describe('the removal of a member', () => {
  test('ends the sessions and invitations that the member opened for others, and their tokens', async () => {
    const { ada, bob, callOfAda } = await twoMembers()
    const inviteBy = async (call: SignedIn) =>
      expectBody(await call('POST', `members/${bob.id}/invitation`), 200, invited.shape.invitation).secret
    const own = await signIn({ invitation: await inviteBy(vendor.call) })
    const call = await signIn({ invitation: await inviteBy(callOfAda) })
    const { session } = expectBody(await call('GET', 'me'), 200, me)
    const body = { name: 'made', permissions: managing }
    const made = expectBody(await call('POST', 'tokens', { body }), 201, createdToken.required())
    const next = expectBody(await harness.as(made.secret)('POST', 'tokens', { body }), 201, createdToken.required())
    // The sender of an invitation is named even if the invited member's own session sends the next one.
    const again = await signIn({ invitation: await inviteBy(call) })
    const { session: second } = expectBody(await again('GET', 'me'), 200, me)
    const open = await inviteBy(callOfAda)
    expect((await vendor.call('DELETE', `members/${ada.id}`)).status).toBe(204)
    for (const one of [call, again, harness.as(made.secret), harness.as(next.secret)])
      expect(outcome(await one('GET', 'me'))).toBe('401 UNAUTHENTICATED')
    const late = await harness.call('POST', 'sessions', { token: null, body: { invitation: open } })
    expect(outcome(late)).toBe('401 UNAUTHENTICATED')
    expect((await own('GET', 'me')).status).toBe(200)
    const log = await vendor.call('GET', 'audit-log?action=member.deleted&limit=1')
    expect(expectBody(log, 200, deletion).data[0]?.changes).toMatchObject({
      revokedTokens: [made.id, next.id],
      endedSessions: [session?.id ?? '', second?.id ?? ''].toSorted((a, b) => (a < b ? -1 : 1)),
      deletedInvitations: [bob.id],
    })
  })
})

test('the entry of a removal lists the webhook endpoints that the member created and that stay', async () => {
  const managesHooks = [...managing, 'webhooks.read', 'webhooks.write']
  const ada = await addMember(managesHooks)
  const call = await signIn({ invitation: ada.invitation.secret })
  const body = { url: 'https://hooks.example.com/', types: ['*'] }
  const own = expectBody(await call('POST', 'webhook-endpoints', { body }), 201, z.looseObject({ id: z.string() }))
  expect((await vendor.call('POST', 'webhook-endpoints', { body })).status).toBe(201)
  expect((await vendor.call('DELETE', `members/${ada.id}`)).status).toBe(204)
  const log = await vendor.call('GET', 'audit-log?action=member.deleted&limit=1')
  expect(expectBody(log, 200, deletion).data[0]?.changes).toMatchObject({ keptWebhookEndpoints: [own.id] })
  expect((await vendor.call('GET', `webhook-endpoints/${own.id}`)).status).toBe(200)
})

test('a credential that expires creates no member, invitation or passkey, also through a session', async () => {
  const { id } = await addMember(managing)
  const expiresAt = new Date(Date.now() + 3_600_000).toISOString()
  const body = { name: 'contractor', permissions: managing, expiresAt }
  const token = expectBody(await vendor.call('POST', 'tokens', { body }), 201, createdToken.required())
  const access = await vendor.call('POST', `members/${id}/access-tokens`, { body })
  const session = await signIn({ token: expectBody(access, 201, createdToken.required()).secret })
  for (const call of [harness.as(token.secret), session]) {
    const added = await call('POST', 'members', { body: { email: 'outlives@example.com', permissions: [] } })
    expect(outcome(added)).toBe('403 FORBIDDEN')
    expect(added.text).toContain(expiresAt)
    expect(outcome(await call('POST', `members/${id}/invitation`))).toBe('403 FORBIDDEN')
    const grant = (permissions: readonly string[]) => call('PATCH', `members/${id}`, { body: { permissions } })
    expect(outcome(await grant([...managing, 'products.read']))).toBe('403 FORBIDDEN')
    expect(outcome(await grant(managing))).toBe('200')
  }
  const options = await session('POST', 'me/passkeys/options')
  expect(outcome(options)).toBe('403 FORBIDDEN')
  expect(options.text).toContain(expiresAt)
})

describe('the cookie', () => {
  test('the session cookie is HttpOnly and SameSite=Strict', async () => {
    const { invitation } = await addMember()
    const body = { invitation: invitation.secret }
    const response = await harness.call('POST', 'sessions', { token: null, body })
    const cookie = response.headers.get('set-cookie') ?? ''
    expect(cookie).toMatch(/^keyward_session=kws_[0-9A-Za-z]{36}; /)
    expect(cookie).toContain('Path=/api/v1')
    expect(cookie).toContain('HttpOnly')
    expect(cookie).toContain('SameSite=Strict')
    expect(cookie).not.toContain('Secure')
    expect(response.text).not.toContain('kws_')
  })

  test('over TLS, no other host of the domain can set the cookie', () => {
    const site = siteOf('license.example.com')
    expect(sessionCookie(site, 'kws_x', new Date(0))).toMatch(
      /^__Host-keyward_session=kws_x; Path=\/; Expires=[^;]+; HttpOnly; Secure; SameSite=Strict$/,
    )
    expect(sessionSecret(site, 'keyward_session=planted')).toBeUndefined()
    expect(sessionSecret(site, 'keyward_session=planted; __Host-keyward_session=own')).toBe('own')
    expect(sessionSecret(siteOf('127.0.0.1:8000'), 'keyward_session=own')).toBe('own')
  })

  test.each([undefined, 'https://evil.example', 'null', 'http://127.0.0.1'])(
    'returns 403 for a change that a page with the origin %s sends',
    async (origin) => {
      const { invitation } = await addMember(['products.read', 'products.write'])
      const call = await signIn({ invitation: invitation.secret }, origin ?? null)
      expect(outcome(await call('POST', 'products', { body: { name: 'Studio' } }))).toBe('403 FORBIDDEN')
      expect((await call('GET', 'products')).status).toBe(200)
    },
  )

  test('rejects the secret of a session in the header Authorization', async () => {
    const { invitation } = await addMember()
    const body = { invitation: invitation.secret }
    const response = await harness.call('POST', 'sessions', { token: null, body })
    const secret = cookieOf(response).slice('keyward_session='.length)
    expect(outcome(await harness.as(secret)('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })

  test('ignores the session cookie when the request has the header Authorization', async () => {
    const { invitation } = await addMember()
    const call = await signIn({ invitation: invitation.secret })
    const response = await call('GET', 'me', { headers: { authorization: `Bearer ${vendor.managementToken}` } })
    expect(expectBody(response, 200, me)).toMatchObject({ kind: 'TOKEN', session: null })
  })

  test('sets no session cookie for a page of another site', async () => {
    const { invitation } = await addMember()
    const options = {
      token: null,
      body: { invitation: invitation.secret },
      headers: { origin: 'https://evil.example' },
    }
    expect(outcome(await harness.call('POST', 'sessions', options))).toBe('403 FORBIDDEN')
  })
})

describe('a session', () => {
  test('a session ends when its member signs out', async () => {
    const { invitation } = await addMember()
    const call = await signIn({ invitation: invitation.secret })
    const response = await call('DELETE', 'sessions/current')
    expect(response.status).toBe(204)
    expect(response.headers.get('set-cookie')).toContain('keyward_session=; ')
    expect(outcome(await call('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })

  test('a session ends when its member is deleted, and loses a permission that the member loses', async () => {
    const { id, invitation } = await addMember(['licenses.read', 'products.read'])
    const call = await signIn({ invitation: invitation.secret })
    expect((await call('GET', 'products')).status).toBe(200)
    await vendor.call('PATCH', `members/${id}`, { body: { permissions: ['licenses.read'] } })
    expect(outcome(await call('GET', 'products'))).toBe('403 FORBIDDEN')
    expect((await vendor.call('DELETE', `members/${id}`)).status).toBe(204)
    expect(outcome(await call('GET', 'licenses'))).toBe('401 UNAUTHENTICATED')
  })

  test.each(["last_used_at = now() - interval '12 hours'", 'expires_at = now()'])(
    'a session ends when %s',
    async (change) => {
      const { id, invitation } = await addMember()
      const call = await signIn({ invitation: invitation.secret })
      expect((await call('GET', 'me')).status).toBe(200)
      await harness.database.pool.query(`update sessions set ${change} where member_id = $1`, [id])
      expect(outcome(await call('GET', 'me'))).toBe('401 UNAUTHENTICATED')
    },
  )

  test('a session is listed, and can be ended by another session of its member or by a caller with credentials.write', async () => {
    const { id, invitation } = await addMember()
    const first = await signIn({ invitation: invitation.secret })
    const next = expectBody(await vendor.call('POST', `members/${id}/invitation`), 200, invited.shape.invitation)
    const second = await signIn({ invitation: next.secret })
    const { data } = expectBody(await second('GET', 'me/sessions'), 200, sessionList)
    expect(data.map(({ isCurrent }) => isCurrent)).toEqual([true, false])
    expect((await second('DELETE', `me/sessions/${data[1]?.id}`)).status).toBe(204)
    expect(outcome(await first('GET', 'me'))).toBe('401 UNAUTHENTICATED')
    expect(outcome(await second('DELETE', `me/sessions/${data[1]?.id}`))).toBe('404 NOT_FOUND')
    const listed = expectBody(await vendor.call('GET', `members/${id}/sessions`), 200, sessionList)
    expect(listed.data.map((one) => one.id)).toEqual([data[0]?.id])
    expect((await vendor.call('DELETE', `members/${id}/sessions`)).status).toBe(204)
    expect(outcome(await second('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })

  test('a session cannot be ended by another member', async () => {
    const { invitation } = await addMember()
    const call = await signIn({ invitation: invitation.secret })
    const { session } = expectBody(await call('GET', 'me'), 200, me)
    const other = await addMember()
    const stranger = await signIn({ invitation: other.invitation.secret })
    expect(outcome(await stranger('DELETE', `me/sessions/${session?.id}`))).toBe('404 NOT_FOUND')
    expect((await call('GET', 'me')).status).toBe(200)
  })

  test('a session ends when its member opens 20 newer ones', async () => {
    const { id, invitation } = await addMember()
    const first = await signIn({ invitation: invitation.secret })
    const body = { name: 'laptop', permissions: ['licenses.read'] }
    const created = await vendor.call('POST', `members/${id}/access-tokens`, { body })
    const { secret } = expectBody(created, 201, createdToken.required())
    for (let i = 0; i < 20; i++) await signIn({ token: secret })
    expect(outcome(await first('GET', 'me'))).toBe('401 UNAUTHENTICATED')
    const { data } = expectBody(await vendor.call('GET', `members/${id}/sessions`), 200, sessionList)
    expect(data).toHaveLength(20)
  })
})

describe('a personal access token', () => {
  test('a member signs in with the permissions of a personal access token, until the token is revoked', async () => {
    const { id } = await addMember(['licenses.read', 'products.read'])
    const tokens = `members/${id}/access-tokens`
    const body = { name: 'laptop', permissions: ['licenses.read'] }
    const token = expectBody(await vendor.call('POST', tokens, { body }), 201, createdToken.required())
    const call = await signIn({ token: token.secret })
    expect(expectBody(await call('GET', 'me'), 200, me).permissions).toEqual(['licenses.read'])
    expect(outcome(await call('GET', 'products'))).toBe('403 FORBIDDEN')
    expect(outcome(await call('POST', 'me/passkeys/options'))).toBe('403 FORBIDDEN')
    expect((await vendor.call('DELETE', `${tokens}/${token.id}`)).status).toBe(204)
    expect(outcome(await call('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })

  test('a session with an access token that another member created names the creator, and ends with the creator', async () => {
    const { ada, bob, callOfAda } = await twoMembers()
    const body = { name: 'bob', permissions: managing }
    const path = `members/${bob.id}/access-tokens`
    const { secret } = expectBody(await callOfAda('POST', path, { body }), 201, createdToken.required())
    const call = await signIn({ token: secret })
    expect(outcome(await call('POST', 'me/passkeys/options'))).toBe('403 FORBIDDEN')
    expect(outcome(await harness.as(secret)('POST', 'me/passkeys/options'))).toBe('403 FORBIDDEN')
    const made = expectBody(await call('POST', 'tokens', { body }), 201, createdToken.required())
    expect(made.createdBy).toMatchObject({ type: 'MEMBER', memberId: bob.id, issuedBy: { memberId: ada.id } })
    expect((await vendor.call('DELETE', `members/${ada.id}`)).status).toBe(204)
    expect(outcome(await call('GET', 'me'))).toBe('401 UNAUTHENTICATED')
    expect(outcome(await harness.as(made.secret)('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })

  test('revokes tokens of a session when the member of the session is removed', async () => {
    const { bob, callOfAda } = await twoMembers()
    const body = { name: 'bob', permissions: managing }
    const path = `members/${bob.id}/access-tokens`
    const { secret } = expectBody(await callOfAda('POST', path, { body }), 201, createdToken.required())
    const call = await signIn({ token: secret })
    const made = expectBody(await call('POST', 'tokens', { body }), 201, createdToken.required())
    const next = await harness.as(made.secret)('POST', 'tokens', { body })
    const { secret: last } = expectBody(next, 201, createdToken.required())
    expect((await vendor.call('DELETE', `members/${bob.id}`)).status).toBe(204)
    for (const token of [made.secret, last])
      expect(outcome(await harness.as(token)('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })

  test('a management token or an API key cannot sign in', async () => {
    for (const token of [vendor.managementToken, vendor.apiKey])
      expect(outcome(await harness.call('POST', 'sessions', { token: null, body: { token } }))).toBe('403 FORBIDDEN')
  })
})

describe('the operator token', () => {
  test('the operator signs in with the operator token until the token is replaced', async () => {
    const call = await signIn({ token: operatorToken })
    expect(expectBody(await call('GET', 'me'), 200, me)).toMatchObject({ kind: 'OPERATOR', organization: null })
    expect((await call('GET', 'organizations')).status).toBe(200)
    expect(outcome(await call('GET', 'licenses'))).toBe('403 FORBIDDEN')
    const { rows } = await harness.database.pool.query<{ seal: Buffer }>(
      'select operator_seal as seal from sessions where operator_seal is not null',
    )
    expect(rows).toHaveLength(1)
    // Another seal simulates a session that a replaced token opened.
    await harness.database.pool.query(
      'update sessions set operator_seal = sha256(operator_seal) where member_id is null',
    )
    expect(outcome(await call('GET', 'me'))).toBe('401 UNAUTHENTICATED')
  })
})

test.each([{}, { token: 'a', invitation: 'b' }, { passkey: 1 }, { token: 5 }, { other: 'x' }])(
  'a sign-in with %j returns 422',
  async (body) => {
    expect(outcome(await harness.call('POST', 'sessions', { token: null, body }))).toBe('422 INVALID_REQUEST')
  },
)

test.each([{ token: 'kwp_unknown' }, { token: '' }, { invitation: 'kwi_unknown' }, { passkey: {} }])(
  'a sign-in with %j opens no session',
  async (body) => {
    const response = await harness.call('POST', 'sessions', { token: null, body })
    expect([401, 422]).toContain(response.status)
    expect(response.headers.get('set-cookie')).toBeNull()
  },
)

describe('the limits of sign-ins', () => {
  /** Creates a limiter whose counts are in memory. `isAccepted` returns whether a call throws no error. */
  function limiter() {
    const counts = new Map<string, number>()
    const count = (owner: string, limit: number) => {
      const used = (counts.get(owner) ?? 0) + 1
      if (used <= limit) counts.set(owner, used)
      return { used, remainingMs: 10_000 }
    }
    return { counts, signIns: createSignInLimiter({ count, add: () => undefined, close: () => Promise.resolve() }) }
  }
  const isAccepted = (run: () => unknown) => {
    try {
      run()
      return true
    } catch {
      return false
    }
  }
  const accepted = (times: number, run: (index: number) => unknown) =>
    Array.from({ length: times }, (_, index) => isAccepted(() => run(index))).filter(Boolean).length

  test('rejects a flood of sign-ins from one address and accepts other addresses', () => {
    const { counts, signIns } = limiter()
    const used = accepted(1_000, () => signIns.countRequest('203.0.113.7'))
    expect(used).toBeGreaterThanOrEqual(200)
    // A window of ten seconds may end during the loop, and the next window accepts 200 more requests.
    expect(used).toBeLessThanOrEqual(400)
    expect(counts.get('sign-in')).toBe(used)
    expect(isAccepted(() => signIns.countRequest('203.0.113.8'))).toBe(true)
  })

  test('accepts the address of a member during a flood of sign-ins from many addresses', () => {
    const { signIns } = limiter()
    signIns.countVerified('PASSKEY ada', '198.51.100.1')
    expect(accepted(2_000, (i) => signIns.countRequest(`203.0.${i % 200}.7`))).toBe(1_000)
    expect(isAccepted(() => signIns.countRequest('198.51.100.1'))).toBe(true)
    expect(isAccepted(() => signIns.countRequest('198.51.100.2'))).toBe(false)
  })

  test('counts failures of a passkey by address, and verified sign-ins by account', () => {
    const { signIns } = limiter()
    for (let i = 0; i < 20; i++) signIns.countFailure('passkey', '203.0.113.7')
    expect(isAccepted(() => signIns.requireFewFailures('passkey', '203.0.113.7'))).toBe(false)
    expect(isAccepted(() => signIns.requireFewFailures('passkey', '198.51.100.1'))).toBe(true)
    expect(isAccepted(() => signIns.requireFewFailures('another', '203.0.113.7'))).toBe(true)
    expect(accepted(50, (i) => signIns.countVerified('ACCESS_TOKEN ada', `203.0.113.${i}`))).toBe(30)
    expect(isAccepted(() => signIns.countVerified('PASSKEY ada', '203.0.113.7'))).toBe(true)
  })

  test('returns 429 for the 31st sign-in of a member within ten seconds, and not for a colleague', async () => {
    const [ada, grace] = [await addMember(), await addMember()]
    const tokenOf = async (id: string) => {
      const body = { name: 'laptop', permissions: ['licenses.read'] }
      const response = await vendor.call('POST', `members/${id}/access-tokens`, { body })
      return expectBody(response, 201, createdToken.required()).secret
    }
    const [token, other] = [await tokenOf(ada.id), await tokenOf(grace.id)]
    const statuses: number[] = []
    // A window of ten seconds may end during the loop, and the next window accepts 30 more sign-ins.
    for (let i = 0; i < 100 && !statuses.includes(429); i++)
      statuses.push((await harness.call('POST', 'sessions', { token: null, body: { token } })).status)
    expect(statuses.indexOf(429)).toBeGreaterThanOrEqual(30)
    expect((await harness.call('POST', 'sessions', { token: null, body: { token: other } })).status).toBe(201)
    expect(
      (await harness.call('POST', 'sessions', { token: null, body: { invitation: ada.invitation.secret } })).status,
    ).toBe(201)
  })
})
