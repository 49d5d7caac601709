/** A React app that shows its content only with a valid license. Otherwise the app shows the next step for the user. */

import type { LicenseClient, ValidationResult } from '@keyward/client'
import type { ReactNode } from 'react'

import { useLicense } from './use-license.ts'

export function Licensed({ client, children }: { client: LicenseClient; children: ReactNode }): ReactNode {
  const { result, check } = useLicense(client)
  if (result === null) return <p>Checking the license…</p>
  if (result.valid) return children
  return (
    <p role="alert">
      {explain(result)} <button onClick={check}>Check again</button>
    </p>
  )
}

function explain(result: Exclude<ValidationResult, { valid: true }>): string {
  if (result.code === 'CONFIGURATION') return `The license settings of this app are wrong: ${result.message}`
  if (result.code === 'TOO_MANY_MACHINES') return 'The license is in use on other machines. Release one of them first.'
  return result.message
}
