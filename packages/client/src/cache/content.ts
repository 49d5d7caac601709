/**
 * The text in the app's storage: `{"version":2,"latestSeenMs":…,"latestSignedMs":…,"licenses":[{"licenseKey","file","rejectedAs"},…]}`.
 * `latestSignedMs` is absent if it is 0. Invariants: each entry has a file. A change for one license key does not change other entries, except that an eleventh entry replaces the oldest one.
 */

import { claimedLicenseKey } from '@keyward/license-file'

import { isObject, parseObject } from '../json.ts'

export interface StoredLicense {
  licenseKey: string
  file: string
  rejectedAs: string | null
}

export interface Content {
  latestSeenMs: number
  latestSignedMs: number
  /** One entry for each license key with a file, newest file first. */
  licenses: readonly StoredLicense[]
}

export const EMPTY_CONTENT: Content = { latestSeenMs: 0, latestSignedMs: 0, licenses: [] }

// The maximum number of stored files. It suffices for apps that switch licenses, and bounds the text for apps that try many keys.
const MAX_LICENSES = 10

export function findLicense({ licenses }: Content, licenseKey: string): StoredLicense | undefined {
  return licenses.find((each) => each.licenseKey === licenseKey)
}

/** Returns the content with new values for `licenseKey`. Removes the entry of the license key when `file` is null. */
export function withLicense(
  content: Content,
  licenseKey: string,
  { file, rejectedAs, ...times }: Omit<Content, 'licenses'> & { file: string | null; rejectedAs: string | null },
): Content {
  const { licenses } = content
  const others = licenses.filter((each) => each.licenseKey !== licenseKey)
  if (file === null) return { ...times, licenses: others }
  const own = { licenseKey, file, rejectedAs }
  const isUnchanged = findLicense(content, licenseKey)?.file === file
  return {
    ...times,
    licenses: isUnchanged
      ? licenses.map((each) => (each.licenseKey === licenseKey ? own : each))
      : [own, ...others].slice(0, MAX_LICENSES),
  }
}

export function serializeContent({ latestSeenMs, latestSignedMs, licenses }: Content): string {
  return JSON.stringify({ version: 2, latestSeenMs, latestSignedMs: latestSignedMs || undefined, licenses })
}

/**
 * Parses the text of a storage. Returns empty content for text in another form. The single `file` of version 1 is assigned to the license
 * key that it contains, or to `ownKey` when it is malformed.
 */
export function parseContent(text: string | null, ownKey: string): Content {
  const { file, latestSeenMs, latestSignedMs, licenses } = parseObject(text ?? '') ?? {}
  const version1 =
    typeof file === 'string' ? [{ licenseKey: claimedLicenseKey(file) ?? ownKey, file, rejectedAs: null }] : []
  return {
    latestSeenMs: typeof latestSeenMs === 'number' ? latestSeenMs : 0,
    latestSignedMs: typeof latestSignedMs === 'number' ? latestSignedMs : 0,
    licenses: Array.isArray(licenses) ? licenses.flatMap(parseLicense) : version1,
  }
}

function parseLicense(value: unknown): StoredLicense[] {
  if (!isObject(value)) return []
  const { licenseKey, file, rejectedAs } = value
  if (typeof licenseKey !== 'string' || typeof file !== 'string') return []
  return [{ licenseKey, file, rejectedAs: typeof rejectedAs === 'string' ? rejectedAs : null }]
}
