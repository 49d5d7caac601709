/** The ways to sign in again, or for the first time without an invitation: OpenID Connect, a passkey, or a token. */

import { type Me, openid as provider, sessions } from '@keyward/contract/management/sign-in'
import { Button, Divider, PasswordInput, Stack } from '@mantine/core'
import { IconBuilding, IconFingerprint } from '@tabler/icons-react'
import { type FormEvent, useState } from 'react'

import { call } from '../api/client.ts'
import { useRead } from '../api/hooks.ts'
import { goToProvider } from '../api/openid.ts'
import { offersPasskeys, signInWithPasskey } from '../api/passkeys.ts'

/** Signs in and returns the caller, or null when another step follows. */
export type SignInStep = () => Promise<Me | null>

export interface FormProps {
  isPending: boolean
  run: (step: SignInStep) => void
}

/** The methods for a person without an invitation. */
export function Methods({ isPending, run }: FormProps) {
  const [token, setToken] = useState('')
  const openid = useRead(provider.readSignInMethods, {}).data?.openid ?? null
  const hasButton = openid !== null || offersPasskeys()
  const [wantsToken, setWantsToken] = useState(false)
  const withToken = (event: FormEvent) => {
    event.preventDefault()
    run(() => call(sessions.createSession, { body: { token: token.trim() } }))
  }
  const leave = async () => {
    await goToProvider()
    return null
  }
  return (
    <>
      {openid && (
        <Button onClick={() => run(leave)} loading={isPending} leftSection={<IconBuilding size={16} />} fullWidth>
          {openid.label}
        </Button>
      )}
      {offersPasskeys() && (
        <Button
          variant={openid ? 'default' : 'filled'}
          onClick={() => run(signInWithPasskey)}
          loading={isPending}
          leftSection={<IconFingerprint size={16} />}
          fullWidth
        >
          Sign in with a passkey
        </Button>
      )}
      {hasButton && <Divider label="or" />}
      {hasButton && !wantsToken ? (
        <Button variant="default" onClick={() => setWantsToken(true)} fullWidth>
          Use a token
        </Button>
      ) : (
        <form onSubmit={withToken}>
          <Stack>
            <PasswordInput
              label="Personal access token or operator token"
              description="A personal access token begins with kwp_."
              value={token}
              onChange={(event) => setToken(event.currentTarget.value)}
              autoComplete="off"
              required
              {...(wantsToken && { autoFocus: true })}
            />
            <Button type="submit" variant={hasButton ? 'default' : 'filled'} loading={isPending}>
              Sign in
            </Button>
          </Stack>
        </form>
      )}
    </>
  )
}
