/**
 * The internal messages between management and validators, which are not part of the public API. Management requests the
 * verdict of a check from a validator, which decides without recording the check (docs/api.md#r5).
 */

import { z } from 'zod'

import { code } from './codes.ts'
import { RULE_SCOPES, RULE_TYPES } from './vocabulary.ts'

/** The path of the endpoint on the admin port of a validator. */
export const DECIDE_PATH = '/decide'

export const decideRequest = z.strictObject({
  organizationId: z.uuid(),
  /** The product that the caller's API key is bound to. Absent for a key without a product. */
  productId: z.uuid().optional(),
  licenseKey: z.string().min(1),
  machineId: z.string().min(1).nullable(),
  /** The address of the check as text, not a range. It is neither stored nor logged (docs/api.md#d1). */
  ip: z.string().nullable(),
  /** Two upper-case letters. The country is neither stored nor logged (docs/api.md#d1). */
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .nullable(),
  /** The text of `pg_current_snapshot()`. The verdict includes all changes that are visible in the snapshot. */
  snapshot: z.string().regex(/^\d{1,20}:\d{1,20}:(?:\d{1,20}(?:,\d{1,20})*)?$/),
})
export type DecideRequest = z.infer<typeof decideRequest>

export const decideResponse = z.object({
  code,
  /** Whether the check needs a new slot of a limited license. `code` is `TOO_MANY_MACHINES` when none is free. */
  needsSlot: z.boolean(),
  /** Whether the machine has a slot with a lease. Only Postgres determines whether the lease has ended. */
  holdsLease: z.boolean().default(false),
  /** The id of the deciding rule. */
  decidedBy: z.uuid().nullable(),
  /** The ids of all matching rules that are enforced. */
  matched: z.array(z.uuid()),
  /** The ids of all matching rules that are only monitored. */
  monitored: z.array(z.uuid()),
  /** The types and the scope of the restrictions that reject the check. */
  restricted: z
    .object({
      scope: z.enum(RULE_SCOPES),
      /** The product or the license; null for the organization. */
      scopeId: z.uuid().nullable(),
      types: z.array(z.enum(RULE_TYPES)),
    })
    .nullable(),
})
export type DecideResponse = z.infer<typeof decideResponse>

/** The response for a license key that no license of the organization has. */
export const DECIDED_NOT_FOUND: DecideResponse = {
  code: 'NOT_FOUND',
  needsSlot: false,
  holdsLease: false,
  decidedBy: null,
  matched: [],
  monitored: [],
  restricted: null,
}
