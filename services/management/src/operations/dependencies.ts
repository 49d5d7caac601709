/** The dependencies of the endpoints. They are created once, at the start, and passed to every handler. */

import type { OriginResolver } from '@keyward/address'
import type { Actor } from '@keyward/contract'
import type { DecideResponse, SentDecideCheck } from '@keyward/contract/dry-run'
import type { Logger } from '@keyward/runtime'

import type { Gates } from '../admission/gates.ts'
import type { SignInLimiter } from '../admission/sign-in-limits.ts'
import type { Db, ReadContext } from '../context.ts'
import type { StoredBytes } from '../http/idempotency.ts'
import type { Propagation } from '../http/propagation.ts'
import type { Keyring } from '../keyring/keyring.ts'
import type { WebhookNetwork } from '../outbound/network.ts'

/** A check that a validator is to decide for the organization of the context. */
export type CheckToDecide = SentDecideCheck

export interface DecidingValidators {
  /** Returns the current verdict. The verdict takes into account everything that was committed before the call. Throws UNAVAILABLE. */
  decide(context: ReadContext, check: CheckToDecide): Promise<DecideResponse>
  /**
   * Returns the verdicts of at most MAX_DECIDE_BATCH checks, in their order. A verdict is null if the address or the machine id of its check
   * is invalid. Uses one connection. Throws UNAVAILABLE.
   */
  decideAll(context: ReadContext, checks: readonly CheckToDecide[]): Promise<readonly (DecideResponse | null)[]>
}

/** An app's request for the license file of a key. */
export interface AppFileRequest extends CheckToDecide {
  /** The API key that authenticated the request. */
  actor: Actor
}

export interface SignedFile {
  licenseId: string
  text: string
}

export interface AppFiles {
  /** Returns the file (docs/api.md#f4). Throws the rejection of the check, MACHINE_NOT_ACTIVE, NOT_STARTED and UNAVAILABLE. */
  issue(organizationId: string, request: AppFileRequest): Promise<SignedFile>
}

/** The values that connect an authorization request of OpenID Connect with its response. */
export interface AuthorizationValues {
  state: string
  nonce: string
  /** The verifier of PKCE. */
  codeVerifier: string
}

/** An account at an identity provider. The provider never assigns the same subject to another person. */
export interface VerifiedAccount {
  readonly issuer: string
  readonly subject: string
  /** The verified e-mail address. */
  readonly email: string
}

/** A provider of OpenID Connect. `owner` is the caller's address. Sign-ins that wait for the provider are limited for each owner. */
export interface IdentityProvider {
  /** The text of the sign-in button in the console. */
  readonly label: string
  /** Returns the URL at the provider to which the browser is redirected. Throws UNAVAILABLE. */
  authorizationUrl(owner: string, redirectUri: string, values: AuthorizationValues): Promise<string>
  /**
   * Exchanges the response of the provider for the account of the person. `response` is the query of the redirect. Throws UNAUTHENTICATED,
   * FORBIDDEN and UNAVAILABLE.
   */
  verify(owner: string, redirectUri: string, values: AuthorizationValues, response: string): Promise<VerifiedAccount>
}

export interface Dependencies {
  /** The pool for changes. */
  db: Db
  /** Runs a change in one transaction on the pool for changes. Its statements are pipelined. */
  transaction: <Result>(work: (db: Db) => Promise<Result>) => Promise<Result>
  /** The pool for reads, with its own connections and a shorter statement timeout. */
  readDb: Db
  gates: Gates
  propagation: Propagation
  storedBytes: StoredBytes
  resolver: OriginResolver
  keyring: Keyring
  /** The current operator token, and the previous one while it is being replaced. */
  operatorTokens: readonly string[]
  validators: DecidingValidators
  appFiles: AppFiles
  signInLimiter: SignInLimiter
  /** The configured provider of OpenID Connect, or null. */
  identityProvider: IdentityProvider | null
  log: Logger
  /** Lets the worker of this process handle new events of shops at once. */
  wakeCommerce: () => void
  /** Whether the operator has set a mail server. */
  mailEnabled: boolean
  /** Whether the operator has also set the address of the portal. */
  portalMailEnabled: boolean
  /** The networks and ports to which webhooks may be sent. */
  webhookNetwork: WebhookNetwork
}
