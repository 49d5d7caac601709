import type { LicenseClient, ValidationResult } from '@keyward/client'
import { useCallback, useEffect, useState } from 'react'

const SIX_HOURS_MS = 6 * 60 * 60 * 1000

/** Returns the latest result, or null before the first one, and a function that checks now. Create the client once, outside components. */
export function useLicense(client: LicenseClient): { result: ValidationResult | null; check: () => void } {
  const [result, setResult] = useState<ValidationResult | null>(null)
  const check = useCallback(() => void client.validate().then(setResult), [client])
  useEffect(() => {
    check()
    const timer = setInterval(check, SIX_HOURS_MS)
    return () => clearInterval(timer)
  }, [check])
  return { result, check }
}
