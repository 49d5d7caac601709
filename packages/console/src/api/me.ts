/** The signed-in caller, whom the shell provides to all screens. */

import type { Permission } from '@keyward/contract'
import type { Me } from '@keyward/contract/management/sign-in'
import { createContext, useContext } from 'react'

export const SignedIn = createContext<Me | null>(null)

/** Returns the signed-in caller. Throws outside the shell. */
export function useSignedIn(): Me {
  const me = useContext(SignedIn)
  if (me === null) throw new Error('This component needs a signed-in caller.')
  return me
}

/** Returns a function that returns whether the signed-in caller has a permission. */
export function useMay(): (permission: Permission) => boolean {
  const { permissions } = useSignedIn()
  return (permission) => permissions.includes(permission)
}
