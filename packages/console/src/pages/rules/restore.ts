/** Creates deleted access rules again. */

import { type AccessRule, accessRules } from '@keyward/contract'

import { call } from '../../api/client.ts'

/** Returns whether the API accepts the rule again. The API rejects expired rules. */
export function canRestore({ expiresAt }: Pick<AccessRule, 'expiresAt'>): boolean {
  return expiresAt === null || Date.parse(expiresAt) > Date.now()
}

function bodyOf({ kind, mode, type, value, scope, scopeId, note, expiresAt, set, ...rule }: AccessRule) {
  const fields = { kind, mode, type, value, scope, note, expiresAt, set }
  return {
    ...fields,
    ...(scopeId !== null && { scopeId }),
    ...(kind === 'EXCLUSION' && { allowSuspendedOrExpired: rule.allowSuspendedOrExpired }),
  }
}

/**
 * Creates at most 1,000 deleted rules again, except expired ones. The counters of the new rules begin at zero. A rule of a set is added to
 * the set again.
 */
export function restoreRules(rules: readonly AccessRule[]) {
  const body = { rules: rules.filter(canRestore).map(bodyOf) }
  return call(accessRules.importAccessRules, { body })
}
