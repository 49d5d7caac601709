/**
 * Access rules: blacklists, exclusions and restrictions (docs/api.md#r1). The schemas check each field by itself; the service checks the
 * canonical form of values and that scopes exist.
 */

import { z } from 'zod'

import { code } from '../codes.ts'
import { exactText, MAX_MACHINE_ID_BYTES, optionalExactText, text } from '../text.ts'
import { RULE_KINDS, RULE_MODES, RULE_SCOPES, RULE_TYPES, TYPES_OF_KIND } from '../vocabulary.ts'
import { actor, EXAMPLE_ID, id, moment, timestamp } from './common.ts'
import { licenseKey, MAX_IMPORT_ROWS } from './licenses.ts'

export const ruleKind = z.enum(RULE_KINDS).meta({
  description:
    'A blacklist rejects the checks that it matches; an exclusion lets them through. Restrictions of a type reject the checks ' +
    'that match none of them.',
  example: 'BLACKLIST',
})
export const ruleType = z.enum(RULE_TYPES).meta({
  description:
    'What the value is compared with. An `EXCLUSION` has the type `IP` or `HWID`; a `RESTRICTION` also `COUNTRY`; a ' +
    '`BLACKLIST` also `CUSTOMER`.',
  example: 'IP',
})
export const ruleMode = z.enum(RULE_MODES).meta({
  description: 'A rule with `MONITOR` matches and counts, and never decides.',
  example: 'ENFORCE',
})
const ruleScope = z.enum(RULE_SCOPES).meta({
  description: 'Where the rule applies. The most specific scope with a match decides.',
  example: 'ORGANIZATION',
})
export type RuleKind = z.infer<typeof ruleKind>
export type RuleMode = z.infer<typeof ruleMode>
export type RuleType = z.infer<typeof ruleType>
export type RuleScope = z.infer<typeof ruleScope>

const value = exactText(MAX_MACHINE_ID_BYTES).meta({
  description:
    'An address or CIDR range, a machine id, a country code, or the id of a customer; stored in canonical form.',
  example: '203.0.113.0/24',
})
/** The most rules of a set. */
export const MAX_SET_RULES = 20_000

const setName = text(64)
  .refine((name) => name !== '.' && name !== '..', 'must not be . or ..')
  .meta({ description: 'The set that the rule belongs to.', example: 'threat feed' })
const note = text(500, 0).meta({ description: 'A free note.', example: 'Abuse reported on 12 November.' })
const allowSuspendedOrExpired = z.boolean().meta({
  description: 'Lets suspended and expired licenses through; only with `EXCLUSION`.',
  example: false,
})

export const accessRule = z
  .object({
    id: z.uuid().meta({ description: 'The id of the rule.', example: EXAMPLE_ID }),
    kind: ruleKind,
    mode: ruleMode,
    type: ruleType,
    value,
    scope: ruleScope,
    scopeId: z
      .uuid()
      .nullable()
      .meta({ description: 'The product or license; null for the organization.', example: null }),
    set: setName.nullable(),
    note: note.nullable(),
    expiresAt: timestamp('After it the rule stops matching; null: never.').nullable(),
    allowSuspendedOrExpired,
    matchCount: z.int().meta({ description: 'How many checks it has matched.', example: 12 }),
    lastMatchedAt: timestamp('When it last matched.').nullable(),
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
    createdBy: actor,
  })
  .meta({ id: 'AccessRule', description: 'A blacklist, an exclusion or a restriction.' })
export type AccessRule = z.infer<typeof accessRule>

export const createAccessRule = z
  .strictObject({
    kind: ruleKind,
    mode: ruleMode.optional(),
    type: ruleType,
    value,
    scope: ruleScope,
    scopeId: id('The product or license the rule is scoped to; absent for the organization.').nullable().optional(),
    set: setName.nullable().optional(),
    note: note.nullable().optional(),
    expiresAt: moment('After it the rule stops matching; in the future.').nullable().optional(),
    allowSuspendedOrExpired: allowSuspendedOrExpired.optional(),
  })
  .superRefine((rule, context) => {
    const reject = (path: string, message: string) => context.addIssue({ code: 'custom', path: [path], message })
    const types = TYPES_OF_KIND[rule.kind]
    if (!types.includes(rule.type))
      reject(
        'type',
        `must be ${types.slice(0, -1).join(', ')} or ${types.at(-1)} with the kind ${rule.kind}; got ${rule.type}`,
      )
    if (rule.kind !== 'EXCLUSION' && rule.allowSuspendedOrExpired === true)
      reject('allowSuspendedOrExpired', 'only an exclusion can let suspended and expired licenses through')
    const scoped = rule.scopeId !== undefined && rule.scopeId !== null
    if (rule.scope === 'ORGANIZATION' && scoped) reject('scopeId', 'must be absent for the scope ORGANIZATION')
    if (rule.scope !== 'ORGANIZATION' && !scoped) reject('scopeId', `is required for the scope ${rule.scope}`)
    if (rule.expiresAt && rule.expiresAt.getTime() <= Date.now()) reject('expiresAt', 'must lie in the future')
  })
export type CreateAccessRule = z.infer<typeof createAccessRule>

export const updateAccessRule = z
  .strictObject({
    mode: ruleMode.optional(),
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
  mode: ruleMode.optional(),
  type: ruleType.optional(),
  scope: ruleScope.optional(),
  scopeId: id('Only of this product or license.').optional(),
  value: value.optional(),
  matches: exactText(MAX_MACHINE_ID_BYTES)
    .optional()
    .meta({
      description:
        'Only unexpired rules that would match this address, all of this range, this machine id or this country. With ' +
        '`expired=true`, the expired ones.',
      example: '203.0.113.7',
    }),
  set: setName.optional(),
  expired: z
    .enum(['true', 'false'])
    .transform((given) => given === 'true')
    .optional()
    .meta({ description: 'Only expired, or only unexpired rules.', example: 'false' }),
}

const ruleSort = z
  .enum(['createdAt', 'matchCount', 'lastMatchedAt'])
  .optional()
  .meta({ description: 'What the list is sorted by; default: `createdAt`.', example: 'matchCount' })
export type RuleSort = NonNullable<z.infer<typeof ruleSort>>
export const accessRuleSorting = {
  sort: ruleSort,
  order: z
    .enum(['desc', 'asc'])
    .optional()
    .meta({ description: 'Descending (default): the newest, or the most, first.', example: 'desc' }),
}

export const exportAccessRules = z.strictObject({
  format: z.enum(['csv', 'json']).default('json').meta({ description: 'The format.', example: 'csv' }),
  ...accessRuleFilter,
})

export const deleteAccessRules = z.strictObject({
  ids: z
    .array(id('A rule.'))
    .min(1)
    .max(MAX_IMPORT_ROWS)
    .meta({ description: 'The rules to delete, at most 1,000.', example: [EXAMPLE_ID] }),
})
export const deletedAccessRules = z.object({
  deleted: z.int().meta({ description: 'How many were deleted.', example: 2 }),
  missing: z.int().meta({ description: 'How many ids no rule has.', example: 0 }),
})

export const importAccessRules = z.strictObject({
  rules: z.array(createAccessRule).min(1).max(MAX_IMPORT_ROWS).meta({ description: 'The rules, at most 1,000.' }),
})
export const importedAccessRules = z.object({
  created: z.int().meta({ description: 'How many were created.', example: 998 }),
  skipped: z.int().meta({ description: 'How many existed already or were duplicates of earlier rows.', example: 2 }),
  ids: z
    .array(z.uuid())
    .meta({ description: 'The rules that were created, in the order of their rows.', example: [EXAMPLE_ID] }),
})
export const exportedAccessRules = z
  .object({ rules: z.array(z.looseObject({})).meta({ description: 'The rules, as an import accepts them.' }) })
  .meta({ description: 'All rules of the filter, oldest first.' })

export const accessRuleSet = z
  .object({
    name: setName.meta({ description: 'The name of the set.', example: 'threat feed' }),
    version: z.uuid().meta({ description: 'Another one after every change of the set.', example: EXAMPLE_ID }),
    rules: z.int().meta({ description: 'How many rules it has, expired ones included.', example: 1_204 }),
    createdAt: timestamp('When it was created.'),
    updatedAt: timestamp('When it was last changed.'),
  })
  .meta({ id: 'AccessRuleSet', description: 'A list of access rules that is replaced as a whole.' })
export type AccessRuleSet = z.infer<typeof accessRuleSet>

/** The name in a path. `ruleSetName` validates it. */
export const ruleSetParams = z.strictObject({
  set: z.string().meta({ description: 'The name of the set, 1 to 64 characters.', example: 'threat feed' }),
})
export const ruleSetName = setName

/** A rule of a set is a rule without `set`. */
export const ruleOfSet = createAccessRule.refine((rule) => rule.set === undefined || rule.set === null, {
  path: ['set'],
  message: 'must be absent; the path names the set',
})
const ifMatch = z.uuid().toLowerCase().nullable().optional().meta({
  description: 'The `version` that the set must have; null: the set must not exist. Otherwise the response is 412.',
  example: EXAMPLE_ID,
})
export const replaceRuleSetOptions = z.strictObject({ ifMatch })
export const replaceRuleSet = z.strictObject({
  rules: z.array(createAccessRule).max(MAX_SET_RULES).meta({ description: 'All rules of the set, at most 20,000.' }),
  ifMatch,
})
export const replacedRuleSet = z.object({
  version: z.uuid().meta({ description: 'The new version of the set.', example: EXAMPLE_ID }),
  created: z.int().meta({ description: 'How many rules were created.', example: 60 }),
  updated: z.int().meta({ description: 'How many got another mode, note, expiry or option.', example: 2 }),
  unchanged: z.int().meta({ description: 'How many were in the set already.', example: 19_900 }),
  removed: z.int().meta({ description: 'How many were removed from the set and deleted.', example: 40 }),
  skipped: z.int().meta({ description: 'How many rows exist outside of the set or repeat earlier rows.', example: 1 }),
  skippedIds: z
    .array(z.uuid())
    .meta({ description: 'The rules outside of the set that equal a row, at most 100.', example: [EXAMPLE_ID] }),
})
export type ReplacedRuleSet = z.infer<typeof replacedRuleSet>

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
  decidedBy: accessRule.nullable().meta({
    description: 'The rule that decides; null if none does, or if only restrictions reject the check.',
  }),
  matched: z.array(accessRule).meta({ description: 'Every unexpired rule that matches and is enforced.' }),
  monitored: z.array(accessRule).meta({ description: 'Every unexpired rule that matches and is only monitored.' }),
  restricted: z
    .object({
      scope: ruleScope,
      scopeId: z
        .uuid()
        .nullable()
        .meta({ description: 'The product or license; null for the organization.', example: null }),
      types: z.array(ruleType).meta({
        description: "The types of which the check matches none of the scope's restrictions.",
        example: ['IP'],
      }),
    })
    .nullable()
    .meta({ description: 'The restrictions that reject the check; null if none does.' }),
})
