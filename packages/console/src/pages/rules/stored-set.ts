import { accessRules, accessRuleSets } from '@keyward/contract'

import { ApiError, call, callAndApply } from '../../api/client.ts'
import { readRuleRows, type RuleRow } from './rows.ts'

export interface StoredSet {
  /** The version of the set, or null if no set has the name. */
  version: string | null
  rows: RuleRow[]
}

/** Reads the version and then the unexpired rules of a set. If the set changes in between, the version is outdated and a replacement fails. */
export async function readStored(name: string): Promise<StoredSet> {
  try {
    const { version } = await call(accessRuleSets.readAccessRuleSet, { params: { set: name } })
    const exported = await call(accessRules.exportAccessRules, {
      query: { set: name, expired: 'false', format: 'json' },
    })
    const { rows } = await readRuleRows(exported, {})
    // The path of the replacement contains the name of the set, so the rules omit the name.
    return {
      version,
      rows: rows.map((row) => Object.assign({}, row, { body: Object.assign({}, row.body, { set: null }) })),
    }
  } catch (error) {
    if (error instanceof ApiError && error.problem.status === 404) return { version: null, rows: [] }
    throw error
  }
}

/** Replaces the rules of a set whose version is `ifMatch`. If `ifMatch` is null, creates the set and fails if the name exists. */
export function putSet(name: string, rows: readonly RuleRow[], ifMatch: string | null) {
  // The page has shown how many rules the replacement deletes.
  const body = { rules: rows.map((row) => row.body), ifMatch, allowEmpty: rows.length === 0 }
  return callAndApply(accessRuleSets.replaceAccessRuleSet, { params: { set: name }, body })
}
