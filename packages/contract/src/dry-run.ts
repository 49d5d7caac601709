/**
 * Dry runs (docs/api.md#r5): the request and response of the public API, and the internal messages in which management requests the verdict
 * from a validator.
 */

import { z } from 'zod'

import { code } from './codes.ts'
import { accessRule, ruleScope, ruleType } from './management/access-rules.ts'
import { id } from './management/common.ts'
import { licenseKey } from './management/licenses.ts'
import { operations } from './management/operations.ts'
import { MAX_MACHINE_ID_BYTES, optionalExactText, text } from './text.ts'
import { RULE_SCOPES, RULE_TYPES } from './vocabulary.ts'

export const evaluateCheck = z
  .strictObject({
    licenseId: id('The id of the license. Alternative to `licenseKey`.').optional(),
    licenseKey: licenseKey.optional(),
    ip: text(100).optional().meta({ description: 'The address of the check.', example: '203.0.113.7' }),
    machineId: optionalExactText(MAX_MACHINE_ID_BYTES).meta({
      description: 'The machine id; null and the empty string count as absent.',
      example: 'A4-F1-00-12',
    }),
    country: z
      .string()
      .regex(/^[A-Za-z]{2}$/, 'must be two letters')
      .toUpperCase()
      .optional()
      .meta({ description: 'The country of the check.', example: 'DE' }),
  })
  .refine((check) => (check.licenseId === undefined) !== (check.licenseKey === undefined), {
    path: ['licenseId'],
    message: 'is required unless licenseKey is given, and must be absent otherwise',
  })
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', ip: '203.0.113.7', machineId: 'A4-F1-00-12' } })

export const evaluation = z.object({
  code,
  decidedBy: accessRule.nullable().meta({
    description: 'The deciding rule; null if no rule decides or if restrictions reject the check.',
  }),
  matched: z.array(accessRule).meta({ description: 'All unexpired, enforced rules that match.' }),
  monitored: z.array(accessRule).meta({ description: 'All unexpired, monitored rules that match.' }),
  restricted: z
    .object({
      scope: ruleScope,
      scopeId: z
        .uuid()
        .nullable()
        .meta({ description: 'The id of the product or license; null for the organization.', example: null }),
      types: z.array(ruleType).meta({
        description: 'The types whose restrictions the check does not satisfy.',
        example: ['IP'],
      }),
    })
    .nullable()
    .meta({ description: 'The restrictions that reject the check; null if no restriction does.' }),
})

/** The paths of the endpoints on the admin port of a validator. */
export const DECIDE_PATH = '/decide'
export const DECIDE_BATCH_PATH = '/decide-batch'
/**
 * The maximum number of checks in a batch. The body of a batch is smaller than the admin port's limit, even if every character is escaped.
 */
export const MAX_DECIDE_BATCH = 32

const decideCheck = z.strictObject({
  /** The product that the caller's API key is bound to, or undefined for an unbound key. */
  productId: z.uuid().optional(),
  licenseKey: z.string().min(1),
  machineId: z.string().min(1).nullable(),
  /** The address of the check as text, not a range. The address is neither stored nor logged (docs/api.md#d1). */
  ip: z.string().nullable(),
  /** Two upper-case letters. The country is neither stored nor logged (docs/api.md#d1). */
  country: z
    .string()
    .regex(/^[A-Z]{2}$/)
    .nullable(),
})
export type DecideCheck = z.output<typeof decideCheck>
/** A check as management sends it. */
export type SentDecideCheck = z.input<typeof decideCheck>

const decideContext = {
  organizationId: z.uuid(),
  /** The text of `pg_current_snapshot()`. The validator decides after it has applied all changes that are visible in the snapshot. */
  snapshot: z.string().regex(/^\d{1,20}:\d{1,20}:(?:\d{1,20}(?:,\d{1,20})*)?$/),
}

export const decideRequest = decideCheck.extend(decideContext)
/** A request as management sends it. */
export type SentDecideRequest = z.input<typeof decideRequest>

export const decideResponse = z.object({
  code,
  /** Whether the check needs a new slot of a limited license. If no slot is free, `code` is `TOO_MANY_MACHINES`. */
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

/** The request for the verdicts of up to MAX_DECIDE_BATCH checks of one organization. */
export const decideBatchRequest = z.strictObject({
  ...decideContext,
  checks: z.array(decideCheck).min(1).max(MAX_DECIDE_BATCH),
})
export type SentDecideBatchRequest = z.input<typeof decideBatchRequest>

/** The verdicts in the order of the checks. A verdict is null if the address or the machine id of its check is invalid. */
export const decideBatchResponse = z.object({ verdicts: z.array(decideResponse.nullable()) })
export type DecideBatchResponse = z.infer<typeof decideBatchResponse>

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

export const dryRuns = operations({
  evaluateAccessRules: {
    route: 'POST /access-rules/evaluate',
    needs: 'licenses.read',
    body: evaluateCheck,
    returns: evaluation,
    readOnly: true,
  },
})
