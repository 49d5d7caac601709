/**
 * Starts an OpenID Connect provider in the process of the test. It signs everybody in without a form, as `person`. Tests can change the ID
 * tokens before they are signed, and can leave the requests to one path without a response.
 */

import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'

import { Provider } from 'oidc-provider'
import { z } from 'zod'

export interface Person {
  sub: string
  email?: string
  email_verified?: boolean
}

export interface TestIdentityProvider {
  issuer: string
  /** The person whom the provider signs in. */
  person: Person
  /** Whether ID tokens contain the e-mail address, which is otherwise at the UserInfo endpoint. */
  hasEmailInToken: boolean
  /** The function that changes the claims of ID tokens, or null. */
  changeClaims: ((claims: Record<string, unknown>) => Record<string, unknown>) | null
  /** Whether ID tokens are signed with a key that the provider does not publish. */
  signsWithOtherKey: boolean
  /** The path at which requests get no response, or null. */
  hangingPath: string | null
  /** The codes that the provider has issued. */
  codes: string[]
  /** Registers the client with the addresses to which the provider may redirect. */
  register(redirectUris: string[]): void
  close(): Promise<void>
}

export const CLIENT_ID = 'keyward'
export const CLIENT_SECRET = 'secret-of-the-client-in-these-tests'

const key = () => generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
const KEY = key()
const OTHER_KEY = key()
const tokens = z.looseObject({ id_token: z.string() })
const claimsSchema = z.record(z.string(), z.unknown())

/** Returns the ID token with changed claims and a new signature. */
function changed(token: string, provider: TestIdentityProvider): string {
  const [header = '', payload = ''] = token.split('.')
  const claims = claimsSchema.parse(JSON.parse(Buffer.from(payload, 'base64url').toString()))
  const next = provider.changeClaims?.(claims) ?? claims
  const input = `${header}.${Buffer.from(JSON.stringify(next)).toString('base64url')}`
  const signature = sign('RSA-SHA256', Buffer.from(input), provider.signsWithOtherKey ? OTHER_KEY : KEY)
  return `${input}.${signature.toString('base64url')}`
}

function createProvider(state: TestIdentityProvider, redirectUris: string[]): Provider {
  const provider = new Provider(state.issuer, {
    clients: [{ client_id: CLIENT_ID, client_secret: CLIENT_SECRET, redirect_uris: redirectUris }],
    jwks: { keys: [{ ...KEY.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }] },
    cookies: { keys: ['the key of the cookies in these tests'] },
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: false,
    ttl: { AccessToken: 600, AuthorizationCode: 60, Grant: 600, IdToken: 600, Interaction: 600, Session: 600 },
    features: { devInteractions: { enabled: false } },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, id) => ({
      accountId: id,
      claims: (use) => (use === 'id_token' && !state.hasEmailInToken ? { sub: id } : { ...state.person, sub: id }),
    }),
    // Grants the scopes without a form.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? '',
        accountId: oidc.session?.accountId ?? '',
      })
      grant.addOIDCScope('openid email')
      await grant.save()
      return grant
    },
  })
  provider.use(async (context, next) => {
    if (context.path === state.hangingPath) await new Promise(() => undefined)
    if (context.path.startsWith('/interaction/'))
      return provider.interactionFinished(context.req, context.res, { login: { accountId: state.person.sub } })
    await next()
    const code = URL.parse(context.response.get('location'))?.searchParams.get('code')
    if (typeof code === 'string') state.codes.push(code)
    const body = context.path === '/token' ? tokens.safeParse(context.body) : null
    if (body?.success) context.body = { ...body.data, id_token: changed(body.data.id_token, state) }
  })
  return provider
}

export async function startIdentityProvider(): Promise<TestIdentityProvider> {
  let handle = (_request: IncomingMessage, response: ServerResponse): unknown => response.writeHead(503).end()
  const server = createServer((request, response) => void handle(request, response))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const state: TestIdentityProvider = {
    issuer: `http://127.0.0.1:${port}`,
    person: { sub: 'ada' },
    hasEmailInToken: true,
    changeClaims: null,
    signsWithOtherKey: false,
    hangingPath: null,
    codes: [],
    register(redirectUris) {
      handle = createProvider(state, redirectUris).callback()
    },
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
  return state
}
