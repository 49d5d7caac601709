/** Starts management with an identity provider, and signs in with OpenID Connect as a browser does. */

import { createdMember, openidOptions } from '@keyward/contract/management/sign-in'

import { type ApiResponse, type Harness, startHarness } from './harness.ts'
import { CLIENT_ID, CLIENT_SECRET, startIdentityProvider, type TestIdentityProvider } from './identity-provider.ts'
import { createVendor, expectBody, type Vendor } from './vendor.ts'

export interface OpenidWorld {
  provider: TestIdentityProvider
  harness: Harness
  vendor: Vendor
  /** Adds a member, whom the provider signs in from now on. */
  addMember(at?: Vendor, email?: string): Promise<{ id: string; email: string }>
  close(): Promise<void>
}

export async function startOpenidWorld(): Promise<OpenidWorld> {
  const provider = await startIdentityProvider()
  const harness = await startHarness({
    OIDC_ISSUER: provider.issuer,
    OIDC_CLIENT_ID: CLIENT_ID,
    OIDC_CLIENT_SECRET: CLIENT_SECRET,
    OIDC_LABEL: 'Sign in with Example',
    OIDC_EMAIL_DOMAINS: 'example.com, example.org',
  })
  const origins = [harness.origin, harness.origin.replace('127.0.0.1', 'localhost')]
  provider.register(origins.map((origin) => `${origin}/console/sign-in`))
  const vendor = await createVendor(harness)
  let people = 0
  return {
    provider,
    harness,
    vendor,
    async addMember(at = vendor, email = `Person${++people}@example.com`) {
      const body = { email, permissions: ['licenses.read', 'credentials.write'] }
      const { id } = expectBody(await at.call('POST', 'members', { body }), 201, createdMember)
      provider.person = { sub: email.toLowerCase(), email: email.toLowerCase(), email_verified: true }
      return { id, email }
    },
    async close() {
      await harness.close()
      await provider.close()
    },
  }
}

/** A browser that stores the cookies of every host. */
export class TestBrowser {
  readonly #harness: Harness
  readonly #cookies = new Map<string, Map<string, string>>()

  constructor(harness: Harness) {
    this.#harness = harness
  }

  header(url: string): string {
    return [...(this.#cookies.get(new URL(url).host) ?? [])].map(([name, value]) => `${name}=${value}`).join('; ')
  }

  store(url: string, headers: Headers): void {
    const { host } = new URL(url)
    const jar = this.#cookies.get(host) ?? new Map<string, string>()
    this.#cookies.set(host, jar)
    for (const line of headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      jar.set(name, value)
    }
  }

  async post(path: string, body?: object, origin: string | null = this.#harness.origin): Promise<ApiResponse> {
    const headers = { cookie: this.header(this.#harness.origin), ...(origin !== null && { origin }) }
    const response = await this.#harness.call('POST', path, { token: null, headers, ...(body && { body }) })
    this.store(this.#harness.origin, response.headers)
    return response
  }

  /** Follows the redirects of the provider. Returns the query with which it redirects back. */
  async visit(start: string): Promise<string> {
    for (let url = start, step = 0; step < 10; step++) {
      const response = await fetch(url, { redirect: 'manual', headers: { cookie: this.header(url) } })
      this.store(url, response.headers)
      const location = response.headers.get('location')
      if (location === null) throw new Error(`${url} does not redirect: ${await response.text()}`)
      const next = new URL(location, url)
      if (next.origin === this.#harness.origin) {
        if (next.pathname !== '/console/sign-in') throw new Error(`The provider redirects to ${next.href}`)
        return next.search.slice(1)
      }
      url = next.href
    }
    throw new Error('The provider redirects forever')
  }

  async begin(): Promise<string> {
    return expectBody(await this.post('sessions/openid-options'), 200, openidOptions).url
  }

  /** Begins a sign-in, and returns the response of the provider. */
  async respond(): Promise<string> {
    return this.visit(await this.begin())
  }

  identify(response: string): Promise<ApiResponse> {
    return this.post('sessions/openid-identity', { response })
  }

  enter(organizationId: string): Promise<ApiResponse> {
    return this.post('sessions', { openid: { organizationId } })
  }
}
