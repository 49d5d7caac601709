/** Shows the shell to signed-in callers, and the sign-in to everybody else. */

import { organizations } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'

import { call, onUnauthorized } from '../api/client.ts'
import { ME, useMe } from '../api/hooks.ts'
import { HERE, setZone } from '../parts/days.ts'
import { LoadingPage, ErrorState } from '../parts/states.tsx'
import { SessionGate } from './session-gate.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'

/** Sets the time zone of an organization that has none to the zone of the browser of the first member who may set it. */
function useZoneOf(me: Me | null): void {
  const queries = useQueryClient()
  const isUnset = me?.organization?.timeZone === null && me.permissions.includes('credentials.write')
  useEffect(() => {
    if (!isUnset) return
    void call(organizations.updateOwnOrganization, { body: { timeZone: HERE } })
      .then(() => queries.invalidateQueries({ queryKey: ME }))
      .catch(() => undefined)
  }, [isUnset, queries])
}

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
  setZone(shown?.organization?.timeZone ?? null)
  useZoneOf(shown)
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
