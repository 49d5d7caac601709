/** How a license is named on a command line, and how it is shown to people. */
import { license, type License, page } from '@keyward/contract'
import { z } from 'zod'

import type { Api } from '../api.ts'
import { EXIT, Failure } from '../failure.ts'
import { describe } from '../output.ts'

/** By id, or by key. Throws Failure. */
export async function findLicense(api: Api, idOrKey: string): Promise<License> {
  if (z.uuid().safeParse(idOrKey).success) {
    const { data } = await api.call({ method: 'GET', path: `/licenses/${idOrKey}` }, license)
    return data
  }
  const path = `/licenses?limit=1&key=${encodeURIComponent(idOrKey)}`
  const { data } = await api.call({ method: 'GET', path }, page(license))
  const [found] = data.data
  if (found === undefined)
    throw new Failure(EXIT.refused, 'No license of this organization has this key', { code: 'NOT_FOUND' })
  return found
}

export function describeLicense(shown: License): string {
  const { policy, machines } = shown
  return describe({
    id: shown.id,
    key: shown.key,
    status: shown.status,
    product: shown.productId,
    customer: shown.customerId,
    type: policy.type,
    expires: policy.expiresAt ?? 'never',
    machines: `${machines.used} of ${machines.max ?? 'any number'}`,
    created: shown.createdAt,
    ...(shown.suspendedAt === null ? {} : { suspended: shown.suspendedAt }),
    ...(shown.revokedAt === null ? {} : { revoked: shown.revokedAt }),
  })
}

/** What a `Prefer: wait` has brought, as a sentence; null when it was not asked for. */
export function describeApplied(appliedBy: string | null): string | null {
  if (appliedBy === null) return null
  const [applied, all] = appliedBy.split('/')
  return applied === all ? `Applied by all ${all} validators.` : `Applied by ${applied} of ${all} validators so far.`
}
