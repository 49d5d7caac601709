/** Shows the shell to signed-in callers, and the sign-in to everybody else. */

import { useMe } from '../api/hooks.ts'
import { ErrorMessage, Waiting } from '../parts/parts.tsx'
import { Shell } from './shell.tsx'
import { SignIn } from './sign-in.tsx'

export function Console() {
  const { me, error } = useMe()
  if (error) return <ErrorMessage error={error} />
  if (me === undefined) return <Waiting />
  return me === null ? <SignIn /> : <Shell me={me} />
}
