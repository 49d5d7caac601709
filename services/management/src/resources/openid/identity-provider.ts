/**
 * Verifies people with an identity provider that implements OpenID Connect (docs/api.md#a7). The provider is not trusted to respond: every
 * request has a deadline, every response has a maximum size, and the number of waiting sign-ins is limited.
 */

import type { Logger } from '@keyward/runtime'
import {
  allowInsecureRequests,
  AuthorizationResponseError,
  authorizationCodeGrant,
  buildAuthorizationUrl,
  calculatePKCECodeChallenge,
  type ClientAuth,
  ClientError,
  ClientSecretBasic,
  ClientSecretPost,
  type Configuration,
  customFetch,
  type CustomFetch,
  discovery,
  enableNonRepudiationChecks,
  fetchUserInfo,
  ResponseBodyError,
} from 'openid-client'

import { createFairGate } from '../../admission/fair-gate.ts'
import { ApiError, quote } from '../../http/problem.ts'
import type { AuthorizationValues, IdentityProvider, VerifiedAccount } from '../../operations/dependencies.ts'

export interface IdentityProviderOptions {
  issuer: URL
  clientId: string
  clientSecret: string
  /** The text of the button in the console. */
  label: string
  /** The domains, in lower case, whose e-mail addresses may sign in. An empty list allows all domains. */
  emailDomains: readonly string[]
}

const SCOPE = 'openid email'
const TIMEOUT_SECONDS = 5
const MAX_RESPONSE_BYTES = 256 * 1024
const METADATA_LIFETIME_MS = 3_600_000
/** The time for which outdated metadata is used after a failed attempt to read it again. */
const METADATA_RETRY_MS = 60_000
const CONCURRENT = { total: 16, perOwner: 4, maxWaiting: 16, maxWaitMs: 5_000 }

/** The codes of openid-client for a response that belongs to another sign-in, is invalid or has expired. */
const INVALID = new Set([
  'OAUTH_INVALID_RESPONSE',
  'OAUTH_JSON_ATTRIBUTE_COMPARISON_FAILED',
  'OAUTH_JWT_CLAIM_COMPARISON_FAILED',
  'OAUTH_JWT_TIMESTAMP_CHECK_FAILED',
  'OAUTH_KEY_SELECTION_FAILED',
])

/** Sends a request like `fetch`, and fails when the response is larger than 256 KiB. */
const boundedFetch: CustomFetch = async (url, options) => {
  const response = await fetch(url, { ...options, body: options.body ?? null, signal: options.signal ?? null })
  const chunks: Uint8Array[] = []
  let size = 0
  const body: AsyncIterable<Uint8Array> | readonly Uint8Array[] = response.body ?? []
  for await (const chunk of body) {
    chunks.push(chunk)
    size += chunk.length
    if (size > MAX_RESPONSE_BYTES) throw new TypeError('the response is too large')
  }
  const { status, headers } = response
  return new Response(size === 0 ? null : Buffer.concat(chunks), { status, headers })
}

/** Authenticates this service with the `Authorization` header, or with the body if the provider does not accept the header. */
function clientAuthentication(secret: string): ClientAuth {
  const [basic, post] = [ClientSecretBasic(secret), ClientSecretPost(secret)]
  return (server, ...rest) => {
    const accepted = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const chosen = accepted.includes('client_secret_basic') ? basic : post
    chosen(server, ...rest)
  }
}

function rejected(detail: string): ApiError {
  return new ApiError('UNAUTHENTICATED', detail)
}

export class OpenidProvider implements IdentityProvider {
  readonly #options: IdentityProviderOptions
  readonly #log: Logger
  readonly #gate = createFairGate({ ...CONCURRENT, onReject: () => undefined, what: 'sign-ins with OpenID Connect' })
  #cached: { configuration: Configuration; untilMs: number } | null = null
  #loading: Promise<Configuration> | null = null

  constructor(options: IdentityProviderOptions, log: Logger) {
    this.#options = options
    this.#log = log
  }

  get label(): string {
    return this.#options.label
  }

  async authorizationUrl(owner: string, redirectUri: string, values: AuthorizationValues): Promise<string> {
    const configuration = await this.#run(owner, () => this.#configuration())
    const url = buildAuthorizationUrl(configuration, {
      redirect_uri: redirectUri,
      scope: SCOPE,
      state: values.state,
      nonce: values.nonce,
      code_challenge: await calculatePKCECodeChallenge(values.codeVerifier),
      code_challenge_method: 'S256',
    })
    return url.href
  }

  async verify(
    owner: string,
    redirectUri: string,
    values: AuthorizationValues,
    response: string,
  ): Promise<VerifiedAccount> {
    const { issuer, claims } = await this.#run(owner, async () => {
      const configuration = await this.#configuration()
      const read = await readClaims(configuration, new URL(`${redirectUri}?${response}`), values)
      return { issuer: configuration.serverMetadata().issuer, claims: read }
    })
    return { issuer, subject: subjectOf(claims), email: this.#emailOf(claims) }
  }

  #emailOf({ email, email_verified: isVerified }: Claims): string {
    if (typeof email !== 'string')
      throw new ApiError('FORBIDDEN', 'The identity provider sent no e-mail address. It must send the claim `email`.')
    if (isVerified !== true)
      throw new ApiError('FORBIDDEN', `The identity provider has not verified the e-mail address ${quote(email)}.`)
    const { emailDomains } = this.#options
    const domain = email.slice(email.lastIndexOf('@') + 1).toLowerCase()
    if (emailDomains.length > 0 && !emailDomains.includes(domain))
      throw new ApiError('FORBIDDEN', `E-mail addresses of the domain ${quote(domain)} cannot sign in this way.`)
    return email
  }

  /** Runs a task that sends requests to the provider. Converts an error of the task to an ApiError. */
  async #run<Result>(owner: string, task: () => Promise<Result>): Promise<Result> {
    const leave = await this.#gate.enter(owner)
    try {
      return await task()
    } catch (error) {
      if (error instanceof ApiError) throw error
      if (error instanceof AuthorizationResponseError)
        throw rejected(`The identity provider ended the sign-in with the error ${quote(error.error)}. Sign in again.`)
      const code = codeOf(error)
      if (code === 'invalid_grant' || INVALID.has(code))
        throw rejected(
          'The response of the identity provider is invalid, was used before, or has expired. Sign in again.',
        )
      throw this.#unavailable(error)
    } finally {
      leave()
    }
  }

  /** Logs a failure of the provider for the operator, and returns the error for the caller. */
  #unavailable(error: unknown): ApiError {
    // The cause is omitted, because it may contain tokens.
    const reason = error instanceof Error ? error.message : String(error)
    this.#log.warn({ issuer: this.#options.issuer.href, code: codeOf(error), reason }, 'identity provider failed')
    const detail = 'The identity provider did not respond as expected. Try again later, or sign in in another way.'
    return new ApiError('UNAVAILABLE', detail, { headers: { 'retry-after': '5' } })
  }

  /** Returns the metadata of the provider, cached for an hour. If a later read fails, returns the cached copy. Throws UNAVAILABLE. */
  async #configuration(): Promise<Configuration> {
    const cached = this.#cached
    if (cached && Date.now() < cached.untilMs) return cached.configuration
    this.#loading ??= this.#discover().finally(() => (this.#loading = null))
    try {
      const configuration = await this.#loading
      this.#cached = { configuration, untilMs: Date.now() + METADATA_LIFETIME_MS }
      return configuration
    } catch (error) {
      const failure = this.#unavailable(error)
      if (!cached) throw failure
      this.#cached = { ...cached, untilMs: Date.now() + METADATA_RETRY_MS }
      return cached.configuration
    }
  }

  #discover(): Promise<Configuration> {
    const { issuer, clientId, clientSecret } = this.#options
    // The configuration accepts plain HTTP only at a loopback address.
    const insecure = issuer.protocol === 'http:' ? [allowInsecureRequests] : []
    return discovery(issuer, clientId, clientSecret, clientAuthentication(clientSecret), {
      timeout: TIMEOUT_SECONDS,
      [customFetch]: boundedFetch,
      // By default, openid-client does not verify the signature of an ID token from the token endpoint.
      execute: [...insecure, enableNonRepudiationChecks],
    })
  }
}

/** The claims of an ID token or of the UserInfo endpoint. */
type Claims = Readonly<Record<string, unknown>>

/** Returns the identifier of the account at the provider. OpenID Connect limits it to 255 ASCII characters. */
function subjectOf({ sub: subject }: Claims): string {
  if (typeof subject === 'string' && /^[\x20-\x7e]{1,255}$/.test(subject)) return subject
  throw rejected('The identity provider sent an account without a valid identifier, the claim `sub`.')
}

/** Returns the code of an error of openid-client, or an empty string. */
function codeOf(error: unknown): string {
  if (error instanceof ResponseBodyError) return error.error
  return error instanceof ClientError ? (error.code ?? '') : ''
}

/** Redeems the code. Returns the claims of the ID token, or those of the UserInfo endpoint if the token contains no e-mail address. */
async function readClaims(configuration: Configuration, redirect: URL, values: AuthorizationValues): Promise<Claims> {
  const tokens = await authorizationCodeGrant(configuration, redirect, {
    expectedState: values.state,
    expectedNonce: values.nonce,
    pkceCodeVerifier: values.codeVerifier,
    idTokenExpected: true,
  })
  const claims = tokens.claims()
  if (!claims) throw rejected('The identity provider sent no ID token.')
  if (claims['email'] !== undefined || configuration.serverMetadata().userinfo_endpoint === undefined) return claims
  return fetchUserInfo(configuration, tokens.access_token, claims.sub)
}
