/** Tests passkeys (docs/api.md#a6) with a real browser and its virtual authenticator, at the host name `localhost`. */

import { createdMember, me, passkey, passkeyList } from '@keyward/contract/management/sign-in'
import { hasBrowser, launchBrowser, WITHOUT_BROWSER } from '@keyward/testkit/browser'
import type { Browser, CDPSession, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { type Harness, startHarness } from '../support/harness.ts'
import { createVendor, expectBody, type Vendor } from '../support/vendor.ts'

interface PageResponse {
  status: number
  body: unknown
}

/** Sends a request from the page, as a script of the console does. */
function request(page: Page, method: string, path: string, body?: unknown): Promise<PageResponse> {
  return page.evaluate(
    async ([sentMethod, sentPath, sentBody]) => {
      const response = await fetch(`/api/v1/${sentPath}`, {
        method: sentMethod,
        headers: { 'content-type': 'application/json' },
        ...(sentBody !== null && { body: sentBody }),
      })
      const text = await response.text()
      const parsed: unknown = text === '' ? null : JSON.parse(text)
      return { status: response.status, body: parsed }
    },
    [method, path, body === undefined ? null : JSON.stringify(body)] as const,
  )
}

const optionsOf = ({ body }: PageResponse) =>
  z.object({ options: z.record(z.string(), z.unknown()) }).parse(body).options

/** Passes the options to the browser's authenticator. The script is a string, because its types exist only in a browser. */
function authenticate(page: Page, kind: 'create' | 'get', options: Record<string, unknown>): Promise<unknown> {
  const parse = kind === 'create' ? 'parseCreationOptionsFromJSON' : 'parseRequestOptionsFromJSON'
  const publicKey = `PublicKeyCredential.${parse}(${JSON.stringify(options)})`
  return page.evaluate(`navigator.credentials.${kind}({ publicKey: ${publicKey} }).then((made) => made.toJSON())`)
}

describe.skipIf(!hasBrowser)(`in a browser (${WITHOUT_BROWSER})`, { timeout: 60_000 }, () => {
  let harness: Harness
  let vendor: Vendor
  let browser: Browser
  let page: Page
  let devtools: CDPSession

  beforeAll(async () => {
    harness = await startHarness()
    vendor = await createVendor(harness)
    browser = await launchBrowser()
    page = await browser.newPage()
    await page.goto(`${harness.origin.replace('127.0.0.1', 'localhost')}/docs`)
    devtools = await page.context().newCDPSession(page)
    await devtools.send('WebAuthn.enable')
    await devtools.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
  })
  afterAll(async () => {
    await browser.close()
    await harness.close()
  })

  /** Signs a new member in with an invitation. */
  async function enter(email: string): Promise<string> {
    const body = { email, permissions: ['licenses.read'] }
    const { id, invitation } = expectBody(await vendor.call('POST', 'members', { body }), 201, createdMember)
    const signedIn = await request(page, 'POST', 'sessions', { invitation: invitation?.secret })
    expect(signedIn.status).toBe(201)
    return id
  }

  async function register(name: string): Promise<PageResponse> {
    const options = optionsOf(await request(page, 'POST', 'me/passkeys/options'))
    return request(page, 'POST', 'me/passkeys', { name, response: await authenticate(page, 'create', options) })
  }

  async function signInWith(response: unknown): Promise<PageResponse> {
    return request(page, 'POST', 'sessions', { passkey: response })
  }

  test('a member signs in with a passkey, and a repeated response gets 401', async () => {
    const id = await enter('ada@example.com')
    const registered = await register('work laptop')
    expect(registered.status).toBe(201)
    expect(passkey.parse(registered.body)).toMatchObject({ name: 'work laptop', lastUsedAt: null })
    expect((await request(page, 'DELETE', 'sessions/current')).status).toBe(204)
    expect((await request(page, 'GET', 'me')).status).toBe(401)

    const options = optionsOf(await request(page, 'POST', 'sessions/passkey-options'))
    const response = await authenticate(page, 'get', options)
    const signedIn = await signInWith(response)
    expect(signedIn.status).toBe(201)
    expect(me.parse(signedIn.body)).toMatchObject({ kind: 'MEMBER', member: { id }, session: { method: 'PASSKEY' } })
    const again = await signInWith(response)
    expect(again.status).toBe(401)

    const { data } = passkeyList.parse((await request(page, 'GET', 'me/passkeys')).body)
    expect(data[0]?.lastUsedAt).not.toBeNull()
    expect((await request(page, 'DELETE', `me/passkeys/${data[0]?.id}`)).status).toBe(204)
    expect(passkeyList.parse((await request(page, 'GET', 'me/passkeys')).body).data).toEqual([])
  })

  test('a session of another invitation registers no further passkey until the member deletes the first', async () => {
    const id = await enter('lin@example.com')
    expect((await register('laptop')).status).toBe(201)
    const invitation = await vendor.call('POST', `members/${id}/invitation`)
    const { secret } = expectBody(invitation, 200, z.object({ secret: z.string() }))
    expect((await request(page, 'POST', 'sessions', { invitation: secret })).status).toBe(201)
    expect((await request(page, 'POST', 'me/passkeys/options')).status).toBe(403)
    const { data } = passkeyList.parse((await request(page, 'GET', 'me/passkeys')).body)
    expect((await request(page, 'DELETE', `me/passkeys/${data[0]?.id}`)).status).toBe(204)
    expect((await register('new laptop')).status).toBe(201)
  })

  test('a changed signature and an unsuitable challenge get 401', async () => {
    await enter('grace@example.com')
    expect((await register('phone')).status).toBe(201)
    const options = optionsOf(await request(page, 'POST', 'sessions/passkey-options'))
    const response = z
      .looseObject({ response: z.looseObject({ signature: z.string() }) })
      .parse(await authenticate(page, 'get', options))
    const { signature } = response.response
    const flipped = `${signature.slice(0, 20)}${signature[20] === 'A' ? 'B' : 'A'}${signature.slice(21)}`
    expect((await signInWith({ ...response, response: { ...response.response, signature: flipped } })).status).toBe(401)

    const late = optionsOf(await request(page, 'POST', 'sessions/passkey-options'))
    const expired = await authenticate(page, 'get', late)
    await harness.database.pool.query('update passkey_challenges set expires_at = now()')
    expect((await signInWith(expired)).status).toBe(401)

    const { challenge } = optionsOf(await request(page, 'POST', 'me/passkeys/options'))
    expect((await signInWith(await authenticate(page, 'get', { ...late, challenge }))).status).toBe(401)
  })
})
