import { accessRuleSet, exportedAccessRules, replacedRuleSet } from '@keyward/contract'

import { ApiError, call, callAndApply, queryString } from '../../api/client.ts'
import { readRuleRows, type RuleRow } from './rows.ts'

export interface StoredSet {
  /** The version of the set, or null if no set has the name. */
  version: string | null
  rows: RuleRow[]
}

export function setApiPath(name: string): string {
  return `/access-rules/sets/${encodeURIComponent(name)}`
}

/** Reads the version and then the rules of a set. If the set changes in between, the version is outdated and a replacement fails. */
export async function readStored(name: string): Promise<StoredSet> {
  try {
    const { version } = await call({ method: 'GET', path: setApiPath(name) }, accessRuleSet)
    const exported = await call(
      { method: 'GET', path: `/access-rules/export${queryString({ set: name, format: 'json' })}` },
      exportedAccessRules,
    )
    // The path of the replacement contains the name of the set, so the rules omit the name.
    const rules = exported.rules.map((rule) => Object.assign({}, rule, { set: null }))
    return { version, rows: (await readRuleRows(JSON.stringify(rules), {})).rows }
  } catch (error) {
    if (error instanceof ApiError && error.problem.status === 404) return { version: null, rows: [] }
    throw error
  }
}

/** Replaces the rules of a set whose version is `ifMatch`. If `ifMatch` is null, creates the set and fails if the name exists. */
export function putSet(name: string, rows: readonly RuleRow[], ifMatch: string | null) {
  const body = { rules: rows.map((row) => row.body), ifMatch }
  return callAndApply({ method: 'PUT', path: setApiPath(name), body }, replacedRuleSet)
}
