// The outcomes that every call shares, made from what the transport found.

import type { Misconfiguration, Outage } from './http.ts'
import type { ConfigurationError, Unreachable } from './results.ts'

export function configurationError({ reason, status, message }: Misconfiguration): ConfigurationError {
  return { source: 'online', code: 'CONFIGURATION', reason, status, message }
}

export function unreachable({ cause }: Outage): Unreachable {
  return { source: 'offline', code: 'UNREACHABLE', cause }
}
