/** Tests the sign-in with OpenID Connect (docs/api.md#a7). A real provider receives the requests that a browser would send. */

import { me, openidIdentity, openidOptions, signInMethods } from '@keyward/contract/management/sign-in'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'

import { type ApiResponse, type Harness, startHarness } from '../support/harness.ts'
import { CLIENT_ID, startIdentityProvider, type TestIdentityProvider } from '../support/identity-provider.ts'
import { type OpenidWorld, startOpenidWorld, TestBrowser } from '../support/openid.ts'
import { createVendor, expectBody, outcome, type Vendor } from '../support/vendor.ts'

let world: OpenidWorld
let provider: TestIdentityProvider
let harness: Harness
let vendor: Vendor

beforeAll(async () => {
  world = await startOpenidWorld()
  ;({ provider, harness, vendor } = world)
})
afterAll(() => world.close())

const addMember: OpenidWorld['addMember'] = (...given) => world.addMember(...given)
const newBrowser = () => new TestBrowser(harness)

afterEach(() => {
  Object.assign(provider, { hasEmailInToken: true, changeClaims: null, signsWithOtherKey: false, hangingPath: null })
})

describe('a member', () => {
  test.each([true, false])(
    'a member signs in once with one response (e-mail in the ID token: %s)',
    async (hasEmailInToken) => {
      const { id, email } = await addMember()
      provider.hasEmailInToken = hasEmailInToken
      const browser = newBrowser()
      const response = await browser.respond()
      const identity = expectBody(await browser.identify(response), 200, openidIdentity)
      expect(identity).toMatchObject({ email: email.toLowerCase(), organizations: [{ id: vendor.id }] })
      const signedIn = await browser.enter(vendor.id)
      expect(expectBody(signedIn, 201, me)).toMatchObject({
        kind: 'MEMBER',
        member: { id },
        session: { method: 'OPENID' },
      })
      expect(signedIn.headers.get('set-cookie')).toMatch(/^keyward_session=kws_.*; HttpOnly; SameSite=Strict$/)
      expect(outcome(await browser.identify(response))).toBe('401 UNAUTHENTICATED')
      expect(outcome(await browser.enter(vendor.id))).toBe('401 UNAUTHENTICATED')
    },
  )

  test('a member of several organizations chooses one of them', async () => {
    const second = await createVendor(harness)
    const stranger = await createVendor(harness)
    const { email } = await addMember()
    const { id } = await addMember(second, email)
    const browser = newBrowser()
    const { organizations } = expectBody(await browser.identify(await browser.respond()), 200, openidIdentity)
    expect(organizations.map((one) => one.id).toSorted()).toEqual([vendor.id, second.id].toSorted())
    expect(outcome(await browser.enter(stranger.id))).toBe('401 UNAUTHENTICATED')
    expect(expectBody(await browser.enter(second.id), 201, me).member?.id).toBe(id)
  })

  test('sets an HttpOnly cookie with SameSite=Strict, and returns an authorization URL with PKCE, state and nonce', async () => {
    const browser = newBrowser()
    const response = await browser.post('sessions/openid-options')
    expect(response.headers.get('set-cookie')).toMatch(
      /^keyward_sign_in=[\w-]{43}; Max-Age=600; Path=\/; HttpOnly; SameSite=Strict$/,
    )
    const { searchParams } = new URL(expectBody(response, 200, openidOptions).url)
    expect(Object.fromEntries(searchParams)).toMatchObject({
      client_id: CLIENT_ID,
      code_challenge_method: 'S256',
      redirect_uri: `${harness.origin}/console/sign-in`,
      response_type: 'code',
      scope: 'openid email',
    })
    const values = ['state', 'nonce', 'code_challenge'].map((name) => searchParams.get(name))
    expect(new Set(values).size).toBe(3)
    for (const value of values) expect(value).toMatch(/^[\w-]{43}$/)
  })

  test('a member who is removed during the sign-in gets no session', async () => {
    const { id } = await addMember()
    const browser = newBrowser()
    expectBody(await browser.identify(await browser.respond()), 200, openidIdentity)
    expect((await vendor.call('DELETE', `members/${id}`)).status).toBe(204)
    const response = await browser.enter(vendor.id)
    expect(outcome(response)).toBe('401 UNAUTHENTICATED')
    expect(response.headers.get('set-cookie')).toBeNull()
    expect(outcome(await browser.identify(await browser.respond()))).toBe('403 FORBIDDEN')
  })
})

describe('an account', () => {
  const signIn = async () => {
    const browser = newBrowser()
    const identity = await browser.identify(await browser.respond())
    return identity.status === 200 ? browser.enter(vendor.id) : identity
  }
  const memberOf = (response: ApiResponse) => expectBody(response, 201, me).member?.id

  test('an account stays bound to its member when its e-mail address changes or is given to another account', async () => {
    const { id, email } = await addMember()
    expect(memberOf(await signIn())).toBe(id)
    provider.changeClaims = (given) => ({ ...given, email: 'renamed@example.com' })
    expect(memberOf(await signIn())).toBe(id)
    provider.changeClaims = null
    provider.person = { ...provider.person, sub: 'a newcomer with the same address' }
    const rejected = await signIn()
    expect(outcome(rejected)).toBe('403 FORBIDDEN')
    expect(rejected.text).toContain(`The member \\"${email.toLowerCase()}\\" signs in with another account`)
  })

  test('an account signs in as the member that is bound to it, even if another member has its present e-mail address', async () => {
    const { id } = await addMember()
    expect(memberOf(await signIn())).toBe(id)
    const bound = provider.person
    const { email } = await addMember()
    provider.person = { ...bound, email: email.toLowerCase() }
    expect(memberOf(await signIn())).toBe(id)
  })

  test.each([
    ['a new invitation', (id: string) => vendor.call('POST', `members/${id}/invitation`)],
    [
      'another address of the member',
      (id: string) => vendor.call('PATCH', `members/${id}`, { body: { email: 'other@example.com' } }),
    ],
    [
      'another provider',
      () =>
        harness.database.pool.query(
          "update members set openid_issuer = 'https://earlier.example' where openid_subject is not null",
        ),
    ],
  ])('the bound account of a member can be replaced after %s', async (name, allow) => {
    const { id, email } = await addMember()
    expect(memberOf(await signIn())).toBe(id)
    provider.person = { ...provider.person, sub: `replaced ${email}` }
    expect(outcome(await signIn())).toBe('403 FORBIDDEN')
    await allow(id)
    if (name.startsWith('another address')) provider.person = { ...provider.person, email: 'other@example.com' }
    expect(memberOf(await signIn())).toBe(id)
  })
})

describe('the response of the provider', () => {
  async function rejectedWith(change: Partial<TestIdentityProvider>): Promise<ApiResponse> {
    await addMember()
    Object.assign(provider, change)
    const browser = newBrowser()
    const response = await browser.identify(await browser.respond())
    expect(outcome(await browser.enter(vendor.id))).toBe('401 UNAUTHENTICATED')
    return response
  }

  test.each([
    ['another issuer', { iss: 'https://evil.example' }],
    ['another audience', { aud: 'another-client' }],
    ['another nonce', { nonce: 'another' }],
    ['no nonce', { nonce: undefined }],
    ['an end in the past', { exp: 1_700_000_000, iat: 1_690_000_000 }],
    ['no expiry', { exp: undefined }],
  ])('rejects a response with an ID token with %s', async (_name, claims) => {
    const response = await rejectedWith({ changeClaims: (given) => ({ ...given, ...claims }) })
    expect(outcome(response)).toBe('401 UNAUTHENTICATED')
  })

  test('rejects a response with an ID token that another key has signed', async () => {
    expect(outcome(await rejectedWith({ signsWithOtherKey: true }))).toBe('401 UNAUTHENTICATED')
  })

  test.each([
    ['an address that is not verified', { email_verified: false }],
    ['an address verified by a text', { email_verified: 'true' }],
    ['no statement about verification', { email_verified: undefined }],
    ['an address of another domain', { email: 'person@evil.example' }],
    ['an address whose domain only ends like an allowed one', { email: 'person@notexample.com' }],
    ['no address', { email: 5 }],
    ['an address of no member', { email: 'nobody@example.com' }],
  ])('rejects a response with %s', async (_name, claims) => {
    const response = await rejectedWith({ changeClaims: (given) => ({ ...given, ...claims }) })
    expect(outcome(response)).toBe('403 FORBIDDEN')
  })

  test('rejects the response from a browser that did not begin the sign-in', async () => {
    await addMember()
    const [ada, eve, stranger] = [newBrowser(), newBrowser(), newBrowser()]
    const response = await ada.respond()
    await eve.begin()
    expect(outcome(await eve.identify(response))).toBe('401 UNAUTHENTICATED')
    expect(outcome(await stranger.identify(response))).toBe('401 UNAUTHENTICATED')
    expect((await ada.identify(response)).status).toBe(200)
  })

  test.each([
    ['another state', (sent: URLSearchParams) => sent.set('state', 'A'.repeat(43))],
    ['no state', (sent: URLSearchParams) => sent.delete('state')],
    ['two states', (sent: URLSearchParams) => sent.append('state', sent.get('state') ?? '')],
    ['another issuer', (sent: URLSearchParams) => sent.set('iss', 'https://evil.example')],
    ['another code', (sent: URLSearchParams) => sent.set('code', 'another')],
    ['no code', (sent: URLSearchParams) => sent.delete('code')],
  ])('rejects a response with %s', async (_name, change) => {
    await addMember()
    const browser = newBrowser()
    const sent = new URLSearchParams(await browser.respond())
    change(sent)
    expect(outcome(await browser.identify(sent.toString()))).toBe('401 UNAUTHENTICATED')
  })

  test('rejects a response with a code that was redeemed in another sign-in', async () => {
    await addMember()
    const [first, second] = [newBrowser(), newBrowser()]
    const used = new URLSearchParams(await first.respond())
    expect((await first.identify(used.toString())).status).toBe(200)
    const next = new URLSearchParams(await second.respond())
    next.set('code', used.get('code') ?? '')
    expect(outcome(await second.identify(next.toString()))).toBe('401 UNAUTHENTICATED')
  })

  test('accepts a response once from concurrent requests', async () => {
    await addMember()
    const browser = newBrowser()
    const response = await browser.respond()
    const statuses = (await Promise.all(Array.from({ length: 5 }, () => browser.identify(response)))).map(
      ({ status }) => status,
    )
    expect(statuses.toSorted((a, b) => a - b)).toEqual([200, 401, 401, 401, 401])
  })

  test('rejects a response after ten minutes', async () => {
    await addMember()
    const browser = newBrowser()
    const response = await browser.respond()
    await harness.database.pool.query('update openid_attempts set expires_at = now()')
    expect(outcome(await browser.identify(response))).toBe('401 UNAUTHENTICATED')
    const late = newBrowser()
    expect((await late.identify(await late.respond())).status).toBe(200)
    await harness.database.pool.query('update openid_attempts set expires_at = now()')
    expect(outcome(await late.enter(vendor.id))).toBe('401 UNAUTHENTICATED')
  })

  test('returns the error code of the provider without the error description', async () => {
    const browser = newBrowser()
    const { searchParams } = new URL(await browser.begin())
    const sent = new URLSearchParams({ error: 'access_denied', error_description: 'Call 0900', iss: provider.issuer })
    sent.set('state', searchParams.get('state') ?? '')
    const response = await browser.identify(sent.toString())
    expect(outcome(response)).toBe('401 UNAUTHENTICATED')
    expect(response.text).toContain('access_denied')
    expect(response.text).not.toContain('0900')
  })
})

test.each([null, 'https://evil.example'])(
  'a page of another site (%s) cannot begin or finish a sign-in',
  async (origin) => {
    const browser = newBrowser()
    const response = await browser.respond()
    for (const [path, body] of [
      ['sessions/openid-options', undefined],
      ['sessions/openid-identity', { response }],
      ['sessions', { openid: { organizationId: vendor.id } }],
    ] as const)
      expect(outcome(await browser.post(path, body, origin))).toBe('403 FORBIDDEN')
  },
)

test.each([{}, { response: '' }, { response: 5 }, { response: 'x'.repeat(9_000) }, { other: 'x' }])(
  'returns 422 for the malformed response %#',
  async (body) => {
    expect(outcome(await newBrowser().post('sessions/openid-identity', body))).toBe('422 INVALID_REQUEST')
  },
)

describe('without a provider', () => {
  test('without a provider, the sign-in methods do not include OpenID Connect, and its endpoints return 404', async () => {
    const other = await startHarness()
    const call = (method: string, path: string) =>
      other.call(method, path, { token: null, headers: { origin: other.origin } })
    expect(expectBody(await call('GET', 'sessions/methods'), 200, signInMethods)).toEqual({ openid: null })
    expect(outcome(await call('POST', 'sessions/openid-options'))).toBe('404 NOT_FOUND')
    await other.close()
  })

  test('returns 503 while the provider is unreachable, and still lists its label among the sign-in methods', async () => {
    const closed = await startIdentityProvider()
    await closed.close()
    const other = await startHarness({ OIDC_ISSUER: closed.issuer, OIDC_CLIENT_ID: 'a', OIDC_CLIENT_SECRET: 'b' })
    const headers = { origin: other.origin }
    const methods = await other.call('GET', 'sessions/methods', { token: null })
    expect(expectBody(methods, 200, signInMethods)).toEqual({ openid: { label: 'Single sign-on' } })
    const response = await other.call('POST', 'sessions/openid-options', { token: null, headers })
    expect(outcome(response)).toBe('503 UNAVAILABLE')
    expect(response.headers.get('retry-after')).toBe('5')
    await other.close()
  })
})
