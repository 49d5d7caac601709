import { UNREACHABLE_MESSAGE } from '../messages.ts'
import type { ConfigurationError, Unreachable } from '../results.ts'
import type { Misconfiguration, Outage } from './http.ts'

export function configurationError({ reason, status, message }: Misconfiguration): ConfigurationError {
  return { source: 'online', code: 'CONFIGURATION', reason, status, message }
}

export function unreachable({ cause, detail }: Outage): Unreachable {
  return { source: 'offline', code: 'UNREACHABLE', message: UNREACHABLE_MESSAGE, cause, detail }
}
