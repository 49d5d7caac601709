/**
 * Access rules: blacklists and exclusions (docs/api.md#r1). The schemas check each field by itself; the service checks the
 * canonical form of values and that scopes exist.
 */

import { z } from 'zod'

import { code } from '../codes.ts'
import { exactText, MAX_MACHINE_ID_BYTES, optionalExactText, text } from '../text.ts'
import { RULE_KINDS, RULE_SCOPES, RULE_TYPES } from '../vocabulary.ts'
import { actor, EXAMPLE_ID, id, moment, timestamp } from './common.ts'
import { licenseKey, MAX_IMPORT_ROWS } from './licenses.ts'

export const ruleKind = z.enum(RULE_KINDS).meta({
  description: 'A blacklist rejects the checks that it matches; an exclusion lets them through.',
  example: 'BLACKLIST',
})
export const ruleType = z.enum(RULE_TYPES).meta({
  description: 'What the value is compared with; `COUNTRY` and `CUSTOMER` only with `BLACKLIST`.',
  example: 'IP',
})
const ruleScope = z.enum(RULE_SCOPES).meta({
  description: 'Where the rule applies. The most specific scope with a match decides.',
  example: 'ORGANIZATION',
})
export type RuleKind = z.infer<typeof ruleKind>
export type RuleType = z.infer<typeof ruleType>
export type RuleScope = z.infer<typeof ruleScope>

const value = exactText(MAX_MACHINE_ID_BYTES).meta({
  description:
    'An address or CIDR range, a machine id, a country code, or the id of a customer; stored in canonical form.',
  example: '203.0.113.0/24',
})
const note = text(500, 0).meta({ description: 'A free note.', example: 'Abuse reported on 12 November.' })
const allowSuspendedOrExpired = z.boolean().meta({
  description: 'Lets suspended and expired licenses through; only with `EXCLUSION`.',
  example: false,
})

export const accessRule = z
  .object({
    id: z.uuid().meta({ description: 'The id of the rule.', example: EXAMPLE_ID }),
    kind: ruleKind,
    type: ruleType,
    value,
    scope: ruleScope,
    scopeId: z
      .uuid()
      .nullable()
      .meta({ description: 'The product or license; null for the organization.', example: null }),
    note: note.nullable(),
    expiresAt: timestamp('After it the rule stops matching; null: never.').nullable(),
    allowSuspendedOrExpired,
    matchCount: z.int().meta({ description: 'How many checks it has matched.', example: 12 }),
    lastMatchedAt: timestamp('When it last matched.').nullable(),
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
    createdBy: actor,
  })
  .meta({ id: 'AccessRule', description: 'A blacklist or an exclusion.' })
export type AccessRule = z.infer<typeof accessRule>

export const createAccessRule = z
  .strictObject({
    kind: ruleKind,
    type: ruleType,
    value,
    scope: ruleScope,
    scopeId: id('The product or license the rule is scoped to; absent for the organization.').nullable().optional(),
    note: note.nullable().optional(),
    expiresAt: moment('After it the rule stops matching; in the future.').nullable().optional(),
    allowSuspendedOrExpired: allowSuspendedOrExpired.optional(),
  })
  .superRefine((rule, context) => {
    const reject = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    if (rule.kind === 'EXCLUSION' && (rule.type === 'COUNTRY' || rule.type === 'CUSTOMER'))
      reject('type', `${rule.type} rules can only be blacklists`)
    if (rule.kind === 'BLACKLIST' && rule.allowSuspendedOrExpired === true)
      reject('allowSuspendedOrExpired', 'only an exclusion can let suspended and expired licenses through')
    const scoped = rule.scopeId !== undefined && rule.scopeId !== null
    if (rule.scope === 'ORGANIZATION' && scoped) reject('scopeId', 'must be absent for the scope ORGANIZATION')
    if (rule.scope !== 'ORGANIZATION' && !scoped) reject('scopeId', `is required for the scope ${rule.scope}`)
    if (rule.expiresAt && rule.expiresAt.getTime() <= Date.now()) reject('expiresAt', 'must lie in the future')
  })
export type CreateAccessRule = z.infer<typeof createAccessRule>

export const updateAccessRule = z
  .strictObject({
    note: note.nullable().optional(),
    expiresAt: moment('After it the rule stops matching; in the future, or null for never.')
      .refine((time) => time.getTime() > Date.now(), 'must lie in the future')
      .nullable()
      .optional(),
    allowSuspendedOrExpired: allowSuspendedOrExpired.optional(),
  })
  .meta({ example: { note: 'Abuse reported on 12 November.' } })

export const accessRuleFilter = {
  kind: ruleKind.optional(),
  type: ruleType.optional(),
  scope: ruleScope.optional(),
  scopeId: id('Only of this product or license.').optional(),
  value: value.optional(),
  expired: z
    .enum(['true', 'false'])
    .transform((given) => given === 'true')
    .optional()
    .meta({ description: 'Only expired, or only unexpired rules.', example: 'false' }),
}

export const importAccessRules = z.strictObject({
  rules: z.array(createAccessRule).min(1).max(MAX_IMPORT_ROWS).meta({ description: 'The rules, at most 1,000.' }),
})
export const importedAccessRules = z.object({
  created: z.int().meta({ description: 'How many were created.', example: 998 }),
  skipped: z.int().meta({ description: 'How many existed already or were duplicates of earlier rows.', example: 2 }),
})

export const myIp = z.object({
  ip: z.string().nullable().meta({ description: 'Your address as the service sees it.', example: '203.0.113.7' }),
  country: z.string().nullable().meta({ description: 'Your country as the edge network sees it.', example: 'DE' }),
})

export const evaluateCheck = z
  .strictObject({
    licenseId: id('The license; or give `licenseKey`.').optional(),
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
    message: 'give either licenseId or licenseKey',
  })
  .meta({ example: { licenseKey: 'K7QF-2MXW-9RTB-HD4C', ip: '203.0.113.7', machineId: 'A4-F1-00-12' } })

export const evaluation = z.object({
  code,
  decidedBy: accessRule.nullable().meta({ description: 'The rule that decides, or null.' }),
  matched: z.array(accessRule).meta({ description: 'Every unexpired rule that matches.' }),
})
