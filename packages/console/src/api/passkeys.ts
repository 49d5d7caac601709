/** Passkeys in the browser. A passkey belongs to a host name, so a console that is opened by IP address offers no passkeys. */

import { type Me, type Passkey, passkeys, sessions } from '@keyward/contract/management/sign-in'
import { browserSupportsWebAuthn, startAuthentication, startRegistration } from '@simplewebauthn/browser'
import { z } from 'zod'

import { call } from './client.ts'

// The schemas contain only the members that the WebAuthn library requires. The library checks the optional members itself.
const signInOptions = z.looseObject({ challenge: z.string() })
const registrationOptions = z.looseObject({
  challenge: z.string(),
  rp: z.looseObject({ name: z.string() }),
  user: z.looseObject({ id: z.string(), name: z.string(), displayName: z.string() }),
  pubKeyCredParams: z.array(z.looseObject({ alg: z.number(), type: z.literal('public-key') })),
})

export function offersPasskeys(): boolean {
  return browserSupportsWebAuthn() && window.isSecureContext && !/^[0-9.]+$|^\[/.test(window.location.hostname)
}

function cancelled(error: unknown): never {
  throw new Error('The browser did not use a passkey. Try again, and confirm with your device.', { cause: error })
}

export async function signInWithPasskey(): Promise<Me> {
  const { options } = await call(sessions.createSignInOptions, {})
  const response = await startAuthentication({ optionsJSON: signInOptions.parse(options) }).catch(cancelled)
  return call(sessions.createSession, { body: { passkey: { ...response } } })
}

export async function registerPasskey(name: string): Promise<Passkey> {
  const { options } = await call(passkeys.createPasskeyOptions, {})
  const response = await startRegistration({ optionsJSON: registrationOptions.parse(options) }).catch(cancelled)
  return call(passkeys.createPasskey, { body: { name, response: { ...response } } })
}
