// The outcomes that every call shares, made from what the transport found.

import type { ConfigurationError, Unreachable } from '../results.ts'
import type { Misconfiguration, Outage } from './http.ts'

export function configurationError({ reason, status, message }: Misconfiguration): ConfigurationError {
  return { source: 'online', code: 'CONFIGURATION', reason, status, message }
}

export function unreachable({ cause }: Outage): Unreachable {
  return { source: 'offline', code: 'UNREACHABLE', cause }
}
