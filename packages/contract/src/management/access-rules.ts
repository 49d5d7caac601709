/**
 * Access rules: blacklists, exclusions and restrictions (docs/api.md#r1). The schemas check single fields. The service checks
 * that scopes exist, and converts values into their canonical form.
 */

import { z } from 'zod'

import { exactText, MAX_MACHINE_ID_BYTES, text } from '../text.ts'
import { RULE_KINDS, RULE_MODES, RULE_SCOPES, RULE_TYPES, TYPES_OF_KIND } from '../vocabulary.ts'
import { actor, countedPage, EXAMPLE_ID, id, listQuery, moment, page, timestamp, totalRequest } from './common.ts'
import { MAX_IMPORT_ROWS } from './license-import.ts'
import { operations } from './operations.ts'

export const ruleKind = z.enum(RULE_KINDS).meta({
  description:
    'A `BLACKLIST` rejects matching checks. An `EXCLUSION` lets matching checks through. Restrictions of a type reject the ' +
    'checks that match none of them.',
  example: 'BLACKLIST',
})
export const ruleType = z.enum(RULE_TYPES).meta({
  description:
    'The property of a check that the value is compared with. The types of each kind: ' +
    RULE_KINDS.map((kind) => `\`${kind}\`: ${TYPES_OF_KIND[kind].map((type) => `\`${type}\``).join(', ')}`).join('; ') +
    '.',
  example: 'IP',
})
export const ruleMode = z.enum(RULE_MODES).meta({
  description: 'A rule with `ENFORCE` decides checks. A rule with `MONITOR` only counts its matches.',
  example: 'ENFORCE',
})
export const ruleScope = z.enum(RULE_SCOPES).meta({
  description: 'The scope of the rule. The most specific scope with a match decides.',
  example: 'ORGANIZATION',
})
export type RuleKind = z.infer<typeof ruleKind>
export type RuleMode = z.infer<typeof ruleMode>
export type RuleType = z.infer<typeof ruleType>
export type RuleScope = z.infer<typeof ruleScope>

const value = exactText(MAX_MACHINE_ID_BYTES).meta({
  description:
    'An address or CIDR range, a machine id, a country code, or the id of a customer. It is stored in canonical form.',
  example: '203.0.113.0/24',
})
/** The maximum number of rules in a set. */
export const MAX_SET_RULES = 20_000

const setName = text(64)
  .refine((name) => name !== '.' && name !== '..', 'must not be . or ..')
  .meta({ description: 'The name of the set that contains the rule.', example: 'threat feed' })
const note = text(500, 0).meta({
  description: 'A note for people. It has no effect.',
  example: 'Abuse reported on 12 November.',
})
const allowSuspendedOrExpired = z.boolean().meta({
  description: 'Whether an `EXCLUSION` also allows suspended and expired licenses.',
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
      .meta({ description: 'The id of the product or license; null for the organization.', example: null }),
    set: setName.nullable(),
    note: note.nullable(),
    expiresAt: timestamp('The time at which the rule stops matching; null if it never does.').nullable(),
    allowSuspendedOrExpired,
    matchCount: z.int().meta({ description: 'The number of matched checks.', example: 12 }),
    lastMatchedAt: timestamp('The time of the last match.').nullable(),
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
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
    scopeId: id('The id of the product or license; absent for the organization.').nullable().optional(),
    set: setName.nullable().optional(),
    note: note.nullable().optional(),
    expiresAt: moment('The time in the future at which the rule stops matching. Default: never.').nullable().optional(),
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
      reject('allowSuspendedOrExpired', `must be false or absent for the kind ${rule.kind}`)
    const scoped = rule.scopeId !== undefined && rule.scopeId !== null
    if (rule.scope === 'ORGANIZATION' && scoped) reject('scopeId', 'must be absent for the scope ORGANIZATION')
    if (rule.scope !== 'ORGANIZATION' && !scoped) reject('scopeId', `is required for the scope ${rule.scope}`)
    if (rule.expiresAt && rule.expiresAt.getTime() <= Date.now()) reject('expiresAt', 'must be in the future')
  })
export type CreateAccessRule = z.infer<typeof createAccessRule>

export const updateAccessRule = z
  .strictObject({
    mode: ruleMode.optional(),
    note: note.nullable().optional(),
    expiresAt: moment('The time in the future at which the rule stops matching; null for never.')
      .refine((time) => time.getTime() > Date.now(), 'must be in the future')
      .nullable()
      .optional(),
    allowSuspendedOrExpired: allowSuspendedOrExpired.optional(),
  })
  .meta({ example: { note: 'Abuse reported on 12 November.' } })

const accessRuleFilter = {
  kind: ruleKind.optional(),
  mode: ruleMode.optional(),
  type: ruleType.optional(),
  scope: ruleScope.optional(),
  scopeId: id('Returns only rules of this product or license.').optional(),
  value: value.optional(),
  matches: exactText(MAX_MACHINE_ID_BYTES)
    .optional()
    .meta({
      description:
        'Returns only rules that would match this address, this machine id, this country, or all addresses of this range. ' +
        'With `expired=true` they are expired rules, otherwise unexpired ones.',
      example: '203.0.113.7',
    }),
  set: setName.optional(),
  licenseId: id(
    'Returns only rules that can decide a check of this license: those of its scopes, without customer rules of others.',
  ).optional(),
  expired: z
    .enum(['true', 'false'])
    .transform((given) => given === 'true')
    .optional()
    .meta({ description: 'Returns only expired rules (`true`) or only unexpired rules (`false`).', example: 'false' }),
}

const ruleSort = z
  .enum(['createdAt', 'matchCount', 'lastMatchedAt'])
  .optional()
  .meta({ description: 'The field that the list is sorted by. Default: `createdAt`.', example: 'matchCount' })
export type RuleSort = NonNullable<z.infer<typeof ruleSort>>
const accessRuleSorting = {
  sort: ruleSort,
  order: z.enum(['desc', 'asc']).optional().meta({
    description: 'The sort order. `desc` returns the newest or highest first. Default: `desc`.',
    example: 'desc',
  }),
}

export const exportAccessRules = z.strictObject({
  format: z.enum(['csv', 'json']).default('json').meta({ description: 'The format of the export.', example: 'csv' }),
  ...accessRuleFilter,
})

export const deleteAccessRules = z.strictObject({
  ids: z
    .array(id('The id of a rule.'))
    .min(1)
    .max(MAX_IMPORT_ROWS)
    .meta({ description: 'The ids of the rules to delete, at most 1,000.', example: [EXAMPLE_ID] }),
})
const deletedAccessRules = z.object({
  deleted: z.int().meta({ description: 'The number of deleted rules.', example: 2 }),
  missing: z.int().meta({ description: 'The number of ids without a rule.', example: 0 }),
})

export const importAccessRules = z.strictObject({
  rules: z.array(createAccessRule).min(1).max(MAX_IMPORT_ROWS).meta({ description: 'The rules, at most 1,000.' }),
})
const ruleFilter = z
  .strictObject({
    kind: ruleKind.optional(),
    mode: ruleMode.optional(),
    type: ruleType.optional(),
    scope: ruleScope.optional(),
    scopeId: accessRuleFilter.scopeId,
    value: accessRuleFilter.value,
    matches: accessRuleFilter.matches,
    set: setName.optional(),
    expired: z
      .boolean()
      .optional()
      .meta({ description: 'Selects only expired or only unexpired rules.', example: false }),
  })
  .refine((filter) => Object.values(filter).some((given) => given !== undefined), 'must have at least one field')
  .meta({ description: 'Selects the rules that satisfy all fields, as in a list.' })

export const setAccessRuleMode = z
  .strictObject({
    mode: ruleMode,
    ids: deleteAccessRules.shape.ids
      .optional()
      .meta({ description: 'The ids of the rules, at most 1,000.', example: [EXAMPLE_ID] }),
    set: setName.optional().meta({ description: 'The name of a set. Selects all of its rules.', example: 'offices' }),
    filter: ruleFilter.optional(),
    dryRun: z.boolean().optional().meta({
      description: 'Whether to change nothing, and to estimate the effect on the checks of the last day instead.',
      example: false,
    }),
  })
  .refine(({ ids, set, filter }) => [ids, set, filter].filter((given) => given !== undefined).length === 1, {
    message: 'must contain exactly one of ids, set and filter',
  })
  .meta({ example: { mode: 'ENFORCE', set: 'offices' } })
const lastDay = z
  .object({
    from: timestamp(
      'The beginning of the first hour that is counted, at most a day ago. All rules have been monitored since then.',
    ),
    checks: z.int().meta({ description: 'The number of checks with a known license key.', example: 1_200 }),
    rejected: z.int().meta({ description: 'About how many of them the rules would have rejected.', example: 17 }),
  })
  .meta({
    description: 'The estimated effect on the checks of the last day. Present with `dryRun` and the mode ENFORCE.',
  })
export type LastDay = z.infer<typeof lastDay>
export const changedAccessRules = z.object({
  updated: z.int().meta({ description: 'The number of rules that had the other mode.', example: 5 }),
  unchanged: z.int().meta({ description: 'The number of rules that had this mode already.', example: 0 }),
  lastDay: lastDay.optional(),
})

/** The maximum number of entries in `skippedRows`. */
export const MAX_SKIPPED_ROWS = 100
const skippedRow = z.object({
  pointer: z.string().meta({ description: 'The JSON pointer to the row.', example: '#/rules/17' }),
  ruleId: z.uuid().meta({ description: 'The id of the rule that does all that the row says.', example: EXAMPLE_ID }),
})
export type SkippedRow = z.infer<typeof skippedRow>
const skippedRows = z
  .array(skippedRow)
  .meta({ description: `The first skipped rows, at most ${MAX_SKIPPED_ROWS}, with the rules that cover them.` })

export const importedAccessRules = z.object({
  created: z.int().meta({ description: 'The number of created rules.', example: 998 }),
  skipped: z.int().meta({
    description: 'The number of rows that an existing rule of the same source or another row covers.',
    example: 2,
  }),
  skippedRows,
  ids: z
    .array(z.uuid())
    .meta({ description: 'The ids of the created rules, in the order of their rows.', example: [EXAMPLE_ID] }),
})
const exportedAccessRules = z
  .object({ rules: z.array(z.looseObject({})).meta({ description: 'The rules, in the format of an import.' }) })
  .meta({ description: 'All rules that match the filter, oldest first.' })

export const accessRuleSet = z
  .object({
    name: setName.meta({ description: 'The name of the set.', example: 'threat feed' }),
    version: z.uuid().meta({
      description: 'The version of the set. Every change of the set creates a new version.',
      example: EXAMPLE_ID,
    }),
    rules: z.int().meta({ description: 'The number of rules in the set, including expired rules.', example: 1_204 }),
    createdAt: timestamp('The time of creation.'),
    updatedAt: timestamp('The time of the last change.'),
  })
  .meta({ id: 'AccessRuleSet', description: 'A list of access rules that is replaced as a whole.' })
export type AccessRuleSet = z.infer<typeof accessRuleSet>

/** The path parameters of a request for a set. `ruleSetName` validates the name. */
const ruleSetParams = z.strictObject({
  set: z.string().meta({ description: 'The name of the set, 1 to 64 characters.', example: 'threat feed' }),
})
export const ruleSetName = setName

/** A rule in the body of a set. The path contains the name of the set, so `set` must be absent. */
const ruleOfSet = createAccessRule.refine((rule) => rule.set === undefined || rule.set === null, {
  path: ['set'],
  message: 'must be absent; the path names the set',
})
const ifMatch = z.uuid().toLowerCase().nullable().optional().meta({
  description: 'The required `version` of the set; null if the set must not exist. Any other version results in 412.',
  example: EXAMPLE_ID,
})
const allowEmpty = z.boolean().optional().meta({
  description: 'Whether the list may be empty, which deletes all rules of the set. Default: false.',
  example: false,
})
const replaceRuleSetOptions = z.strictObject({ ifMatch, allowEmpty })
const replaceRuleSet = z.strictObject({
  rules: z.array(createAccessRule).max(MAX_SET_RULES).meta({ description: 'All rules of the set, at most 20,000.' }),
  ifMatch,
  allowEmpty,
})
export const replacedRuleSet = z.object({
  version: z.uuid().meta({ description: 'The new version of the set.', example: EXAMPLE_ID }),
  created: z.int().meta({ description: 'The number of created rules.', example: 60 }),
  updated: z
    .int()
    .meta({ description: 'The number of rules with a changed mode, note, expiry or option.', example: 2 }),
  unchanged: z.int().meta({ description: 'The number of unchanged rules.', example: 19_900 }),
  removed: z
    .int()
    .meta({ description: 'The number of rules that were removed from the set and deleted.', example: 40 }),
  skipped: z.int().meta({ description: 'The number of rows that another row covers.', example: 1 }),
  skippedRows,
})
export type ReplacedRuleSet = z.infer<typeof replacedRuleSet>

export const myIp = z.object({
  ip: z
    .string()
    .nullable()
    .meta({ description: 'The address of the caller, as the service determines it.', example: '203.0.113.7' }),
  country: z
    .string()
    .nullable()
    .meta({ description: 'The country of the caller, as the edge network reports it.', example: 'DE' }),
})

export const accessRules = operations({
  listAccessRules: {
    route: 'GET /access-rules',
    needs: 'licenses.read',
    query: listQuery({ ...accessRuleFilter, ...accessRuleSorting, ...totalRequest }),
    returns: countedPage(accessRule),
  },
  createAccessRule: {
    route: 'POST /access-rules',
    needs: 'licenses.write',
    body: createAccessRule,
    returns: accessRule,
    creates: true,
    propagates: true,
  },
  readAccessRule: { route: 'GET /access-rules/{id}', needs: 'licenses.read', returns: accessRule },
  updateAccessRule: {
    route: 'PATCH /access-rules/{id}',
    needs: 'licenses.write',
    body: updateAccessRule,
    returns: accessRule,
    propagates: true,
  },
  deleteAccessRule: { route: 'DELETE /access-rules/{id}', needs: 'licenses.write', propagates: true },
  importAccessRules: {
    route: 'POST /access-rules/import',
    needs: 'licenses.write',
    body: importAccessRules,
    rows: { name: 'rules', row: createAccessRule, maxRowBytes: 16 * 1024 },
    maxBodyBytes: 8 * 1024 * 1024,
    returns: importedAccessRules,
    propagates: true,
  },
  exportAccessRules: {
    route: 'GET /access-rules/export',
    needs: 'licenses.read',
    query: exportAccessRules,
    returns: exportedAccessRules,
    file: 'application/json',
  },
  deleteAccessRules: {
    route: 'POST /access-rules/delete',
    needs: 'licenses.write',
    body: deleteAccessRules,
    returns: deletedAccessRules,
    propagates: true,
  },
  setAccessRuleMode: {
    route: 'POST /access-rules/set-mode',
    needs: 'licenses.write',
    body: setAccessRuleMode,
    returns: changedAccessRules,
    propagates: true,
  },
  readMyIp: { route: 'GET /access-rules/my-ip', needs: 'token', returns: myIp },
})

export const accessRuleSets = operations({
  listAccessRuleSets: {
    route: 'GET /access-rules/sets',
    needs: 'licenses.read',
    query: listQuery({}),
    returns: page(accessRuleSet),
  },
  readAccessRuleSet: {
    route: 'GET /access-rules/sets/{set}',
    needs: 'licenses.read',
    params: ruleSetParams,
    returns: accessRuleSet,
  },
  replaceAccessRuleSet: {
    route: 'PUT /access-rules/sets/{set}',
    needs: 'licenses.write',
    params: ruleSetParams,
    body: replaceRuleSet,
    rows: {
      name: 'rules',
      row: ruleOfSet,
      maxRowBytes: 16 * 1024,
      maxRows: MAX_SET_RULES,
      minRows: 0,
      others: replaceRuleSetOptions,
    },
    maxBodyBytes: 32 * 1024 * 1024,
    returns: replacedRuleSet,
    propagates: true,
  },
  deleteAccessRuleSet: {
    route: 'DELETE /access-rules/sets/{set}',
    needs: 'licenses.write',
    params: ruleSetParams,
    propagates: true,
  },
})
