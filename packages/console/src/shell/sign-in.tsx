/** Sign-in by invitation, passkey or token. The secret of an invitation is in the fragment of the link. */

import { type Me, me } from '@keyward/contract/management/sign-in'
import { Button, Center, Divider, Group, Paper, PasswordInput, Stack, Text, Title } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type FormEvent, useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../api/client.ts'
import { offersPasskeys, signInWithPasskey } from '../api/passkeys.ts'
import { ErrorMessage } from '../parts/parts.tsx'
import { text } from '../text.ts'

export function SignIn() {
  const queries = useQueryClient()
  const [location, navigate] = useLocation()
  const [token, setToken] = useState('')
  const [error, setError] = useState<Error | null>(null)
  const [isPending, setIsPending] = useState(false)
  const invitation = location === '/invitation' ? window.location.hash.slice(1) : ''

  const run = async (signIn: () => Promise<Me>) => {
    setIsPending(true)
    setError(null)
    try {
      queries.setQueryData(['/me'], await signIn())
      if (location === '/invitation') navigate('/account', { replace: true })
    } catch (failure) {
      setError(failure instanceof Error ? failure : new Error(String(failure)))
    } finally {
      setIsPending(false)
    }
  }
  const enter = (signIn: () => Promise<Me>) => void run(signIn)
  const withToken = (event: FormEvent) => {
    event.preventDefault()
    enter(() => call({ method: 'POST', path: '/sessions', body: { token: token.trim() } }, me))
  }
  return (
    <Center mih="100vh" p="md" component="main">
      <Paper withBorder p="xl" w={420} maw="100%" shadow="sm">
        <Stack>
          <Group gap="sm">
            <img src="/console/assets/icon.svg" alt="" width={32} height={32} />
            <Title order={1} size="h3">
              {invitation === '' ? text.signIn.title : text.signIn.invited}
            </Title>
          </Group>
          {invitation === '' ? (
            <>
              {offersPasskeys() && (
                <>
                  <Button onClick={() => enter(signInWithPasskey)} loading={isPending} fullWidth>
                    {text.signIn.passkey}
                  </Button>
                  <Divider label={text.signIn.or} />
                </>
              )}
              <form onSubmit={withToken}>
                <Stack>
                  <PasswordInput
                    label={text.signIn.token}
                    description={text.signIn.tokenHint}
                    value={token}
                    onChange={(event) => setToken(event.currentTarget.value)}
                    autoComplete="off"
                    required
                  />
                  <Button type="submit" variant={offersPasskeys() ? 'default' : 'filled'} loading={isPending}>
                    {text.signIn.submit}
                  </Button>
                </Stack>
              </form>
              <Text size="sm" c="dimmed">
                {text.signIn.lost}
              </Text>
            </>
          ) : (
            <>
              <Text size="sm">{text.signIn.invitedHint}</Text>
              <Button
                loading={isPending}
                onClick={() => enter(() => call({ method: 'POST', path: '/sessions', body: { invitation } }, me))}
              >
                {text.signIn.accept}
              </Button>
            </>
          )}
          <ErrorMessage error={error} />
        </Stack>
      </Paper>
    </Center>
  )
}
