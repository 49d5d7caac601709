/** Asks a person whose session has ended to sign in again. The screen behind stays as it is, with everything that was typed. */

import type { Me } from '@keyward/contract/management/sign-in'
import { Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'

import { ME } from '../api/hooks.ts'
import { ErrorMessage } from '../parts/states.tsx'
import { Window } from '../parts/window.tsx'
import { Methods, type SignInStep } from './sign-in-methods.tsx'
/** Above all other windows, whose forms keep their content. */
const Z_INDEX = 1_000

function isSamePerson(one: Me, other: Me): boolean {
  return one.member?.id === other.member?.id && one.organization?.id === other.organization?.id
}

export function SessionGate({ former }: { former: Me }) {
  const queries = useQueryClient()
  const [error, setError] = useState<Error | null>(null)
  const [isPending, setIsPending] = useState(false)
  const enter = async (step: SignInStep) => {
    setIsPending(true)
    setError(null)
    try {
      const signedIn = await step()
      if (signedIn === null) return
      // Another person must not see the data that is still in memory.
      if (!isSamePerson(former, signedIn)) window.location.assign('/console')
      queries.setQueryData(ME, signedIn)
      await queries.invalidateQueries()
    } catch (failure) {
      setError(failure instanceof Error ? failure : new Error(String(failure)))
    } finally {
      setIsPending(false)
    }
  }
  return (
    <Window
      title="Your session has ended"
      onClose={() => undefined}
      withCloseButton={false}
      closeOnClickOutside={false}
      closeOnEscape={false}
      zIndex={Z_INDEX}
      centered
    >
      <Stack>
        <Text size="sm">Sign in again. This page and everything that you have typed stay as they are.</Text>
        <Methods isPending={isPending} run={(step) => void enter(step)} />
        <ErrorMessage error={error} />
      </Stack>
    </Window>
  )
}
