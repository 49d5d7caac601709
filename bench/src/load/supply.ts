/** Returns prepared requests in a cycle, with a new machine id in each check of a new machine. */

import { NEW_MACHINE_MARK, newMachineNumber, rawRequest, type ApiVersion, type Check } from './checks.ts'

/** Returns the next request as bytes, or as a latin1 string of those bytes. */
export type Supply = () => Buffer | string

let newMachines = 0

export function createSupply(checks: readonly Check[], version: ApiVersion, url: URL): Supply {
  const requests = checks.map((check) => {
    const request = rawRequest(check, version, url.host)
    return check.kind === 'new' ? request.toString('latin1') : request
  })
  let next = 0
  return () => {
    const request = requests[next]!
    next = (next + 1) % requests.length
    return typeof request === 'string' ? withNewMachine(request) : request
  }
}

/** Replaces the placeholder with a machine number that this process has not used before. */
export function withNewMachine(text: string): string {
  newMachines += 1
  return text.replace(NEW_MACHINE_MARK, newMachineNumber(newMachines))
}
