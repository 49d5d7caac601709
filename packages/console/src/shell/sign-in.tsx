/**
 * Sign-in by invitation, OpenID Connect, passkey or token. The secret of an invitation is in the fragment of the link, which browsers never
 * send to a server.
 */

import { type OpenidIdentity, sessions } from '@keyward/contract/management/sign-in'
import { Button, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { type ReactNode, useEffect, useState } from 'react'
import { useLocation } from 'wouter'

import { call } from '../api/client.ts'
import { ME } from '../api/hooks.ts'
import { enter, identify, takeResponse, takeReturnPath } from '../api/openid.ts'
import { Mark } from '../parts/mark.tsx'
import { ErrorMessage } from '../parts/states.tsx'
import { type FormProps, Methods, type SignInStep } from './sign-in-methods.tsx'

function Frame({ title, hint, children }: { title: string; hint?: string | undefined; children: ReactNode }) {
  return (
    <main className="auth">
      <div className="auth-column">
        <header className="auth-head">
          <Mark size="large" />
          <h1>{title}</h1>
          <span>{window.location.host}</span>
        </header>
        <div className="card auth-card">{children}</div>
        {hint !== undefined && <p className="sub">{hint}</p>}
      </div>
    </main>
  )
}

/** Lets a person whom the identity provider has verified choose an organization. */
function Organizations({ identity, isPending, run }: FormProps & { identity: OpenidIdentity }) {
  return (
    <>
      <Text size="sm">{`${identity.email} is a member of several organizations.`}</Text>
      {identity.organizations.map(({ id, name }) => (
        <Button key={id} variant="default" onClick={() => run(() => enter(id))} loading={isPending} fullWidth>
          {name}
        </Button>
      ))}
    </>
  )
}

function Invitation({ secret, isPending, run }: FormProps & { secret: string }) {
  return (
    <>
      <Text size="sm">The invitation signs you in once. Then register a passkey for the next sign-in.</Text>
      <Button
        loading={isPending}
        onClick={() => run(() => call(sessions.createSession, { body: { invitation: secret } }))}
      >
        Accept the invitation
      </Button>
    </>
  )
}

export function SignIn() {
  const queries = useQueryClient()
  const [location, navigate] = useLocation()
  const [response] = useState(takeResponse)
  const [identity, setIdentity] = useState<OpenidIdentity | null>(null)
  const [isFinishing, setIsFinishing] = useState(response !== null)
  const [error, setError] = useState<Error | null>(null)
  const [isPending, setIsPending] = useState(false)
  const invitation = location === '/invitation' ? window.location.hash.slice(1) : ''

  const runStep = async (step: SignInStep) => {
    setIsPending(true)
    setError(null)
    try {
      const signedIn = await step()
      if (signedIn === null) return
      queries.setQueryData(ME, signedIn)
      // The overview contains the step to register a passkey, if the person may see it.
      if (location === '/invitation')
        navigate(signedIn.permissions.includes('analytics.read') ? '/' : '/account', { replace: true })
      if (location === '/sign-in') navigate(takeReturnPath(), { replace: true })
    } catch (failure) {
      // The verified identity is valid for one sign-in.
      setIdentity(null)
      setError(failure instanceof Error ? failure : new Error(String(failure)))
    } finally {
      setIsPending(false)
    }
  }
  const run = (step: SignInStep) => void runStep(step)

  const finish = async (received: string) => {
    await runStep(async () => {
      const found = await identify(received)
      const [first, ...others] = found.organizations
      if (first && others.length === 0) return enter(first.id)
      setIdentity(found)
      return null
    })
    setIsFinishing(false)
  }
  useEffect(() => {
    if (response !== null) void finish(response)
    // The effect runs once, because the service accepts a response of the identity provider once.
  }, [])

  const isInviting = invitation !== ''
  const title = identity ? 'Choose an organization' : isInviting ? 'You have an invitation' : 'Sign in to Keyward'
  return (
    <Frame
      title={title}
      hint={isInviting || identity ? undefined : 'No invitation? Ask a colleague who manages members, or the operator.'}
    >
      {isFinishing ? (
        <Text role="status">Signing in…</Text>
      ) : identity ? (
        <Organizations identity={identity} isPending={isPending} run={run} />
      ) : isInviting ? (
        <Invitation secret={invitation} isPending={isPending} run={run} />
      ) : (
        <Methods isPending={isPending} run={run} />
      )}
      <ErrorMessage error={error} />
    </Frame>
  )
}
