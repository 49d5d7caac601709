/**
 * The verdict codes and their messages. The messages are the same for every caller and never name the deciding access rule
 * (docs/api.md#v5).
 */

import { z } from 'zod'

import { CODES } from './vocabulary.ts'

export const code = z.enum(CODES).meta({ description: 'The outcome of a check.', example: 'VALID' })
export type Code = z.infer<typeof code>

export const CODE_MESSAGES: Record<Code, string> = {
  VALID: 'The license is valid.',
  NOT_FOUND: 'No license with this key exists.',
  BLACKLISTED: 'This check was refused.',
  REVOKED: 'The license has been revoked.',
  SUSPENDED: 'The license is suspended.',
  EXPIRED: 'The license has expired.',
  FINGERPRINT_REQUIRED: 'This license needs a machine id.',
  TOO_MANY_MACHINES: 'The license is already active on the maximum number of machines.',
}
