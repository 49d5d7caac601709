/**
 * The codes that a check can end in, and the sentence that goes with each.
 * The sentences are the same for every caller and never say which access rule decided (docs/api.md#v5).
 */
import { z } from 'zod'

import { codes } from './vocabulary.ts'

export const code = z.enum(codes).meta({ description: 'The outcome of a check.', example: 'VALID' })
export type Code = z.infer<typeof code>

export const codeMessages: Record<Code, string> = {
  VALID: 'The license is valid.',
  NOT_FOUND: 'No license with this key exists.',
  BLACKLISTED: 'This check was refused.',
  REVOKED: 'The license has been revoked.',
  SUSPENDED: 'The license is suspended.',
  EXPIRED: 'The license has expired.',
  FINGERPRINT_REQUIRED: 'This license needs a machine id.',
  TOO_MANY_MACHINES: 'The license is already active on the maximum number of machines.',
}
