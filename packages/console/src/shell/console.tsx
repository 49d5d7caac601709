/** Shows the shell to signed-in callers, and the sign-in to everybody else. */

import type { Me } from '@keyward/contract/management/sign-in'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'

import { onUnauthorized } from '../api/client.ts'
import { ME, useMe } from '../api/hooks.ts'
import { LoadingPage, ErrorState } from '../parts/states.tsx'
import { SessionGate } from './session-gate.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'

export function Console() {
  const queries = useQueryClient()
  const { me, error, retry } = useMe()
  /** The caller who was signed in last, and whose screen stays while a session gate covers it. */
  const [former, setFormer] = useState<Me | null>(null)
  if (me && me !== former) setFormer(me)
  // Any response of 401 reads the caller again, which shows whether the session has ended.
  useEffect(
    () =>
      onUnauthorized(() => {
        if (queries.isFetching({ queryKey: ME }) === 0) void queries.invalidateQueries({ queryKey: ME })
      }),
    [queries],
  )
  const shown = me ?? former
  if (shown)
    return (
      <>
        <Shell me={shown} />
        {me === null && <SessionGate former={shown} />}
      </>
    )
  if (error) return <ErrorState error={error} retry={retry} />
  return me === undefined ? <LoadingPage /> : <SignIn />
}
