import { DEFAULT_FILE_DAYS, filesEndWithLease, type License, licenses, type Terms } from '@keyward/contract'
import { z } from 'zod'

import type { Api } from '../api.ts'
import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'
import { describeEntitlements } from './entitlements.ts'

/**
 * Finds a license by its id or key. A text in the form of an id is tried as an id first, and then as a key. Throws Failure if no license
 * has the id or key.
 */
export async function findLicense(api: Api, idOrKey: string): Promise<License> {
  const found = await findById(api, idOrKey)
  if (found !== null) return found
  const { data } = await api.call(licenses.listLicenses, { query: { key: idOrKey, limit: 1 } })
  const [byKey] = data.data
  if (byKey === undefined)
    throw new Failure(EXIT.apiError, 'No license of this organization has this id or key', { code: 'NOT_FOUND' })
  return byKey
}

/** Finds a license by its id. Returns null when no license has the id. Throws Failure for other errors. */
export async function findById(api: Api, text: string): Promise<License | null> {
  if (!z.uuid().safeParse(text).success) return null
  try {
    return (await api.call(licenses.readLicense, { params: { id: text } })).data
  } catch (error) {
    if (error instanceof Failure && error.code === 'NOT_FOUND') return null
    throw error
  }
}

/** Formats the expiry of a license: a time, `never`, or the number of days after the first check. */
export function expiryOf({ expiresAt, durationDays }: License['policy']): string {
  if (expiresAt !== null || durationDays === null) return expiresAt ?? 'never'
  return `${durationDays} days after the first check`
}

export function fileLifetimeOf(policy: Terms): string {
  return filesEndWithLease(policy)
    ? 'valid until the lease ends'
    : `valid for ${policy.fileDays ?? DEFAULT_FILE_DAYS} days`
}

export function describeLicense(shown: License): string {
  const { policy, machines } = shown
  return describe({
    id: shown.id,
    key: shown.key,
    status: shown.status,
    product: shown.productId,
    customer: shown.customerId,
    ...(shown.externalId === null ? {} : { 'external id': shown.externalId }),
    ...(shown.templateId === null ? {} : { template: shown.templateId }),
    type: policy.type,
    expires: expiryOf(policy),
    machines: `${machines.used} of ${machines.max ?? 'any number'}`,
    ...(shown.graceEndsAt === null ? {} : { graceEnds: shown.graceEndsAt }),
    ...(policy.leaseSeconds === null ? {} : { leases: `of ${policy.leaseSeconds} s` }),
    files: fileLifetimeOf(policy),
    ...(policy.maxReleases === null ? {} : { releases: `at most ${policy.maxReleases} in 30 days` }),
    ...describeEntitlements(shown.entitlements),
    created: shown.createdAt,
    ...(shown.suspendedAt === null ? {} : { suspended: shown.suspendedAt }),
    ...(shown.revokedAt === null ? {} : { revoked: shown.revokedAt }),
  })
}
