/**
 * Issues a license file to an app that authenticates with an API key (docs/api.md#f4). The app gets a file only if a check from the same
 * caller would be VALID without a new slot. A validator decides that check. The caller's address and country are sent only to the
 * validator, in the body of a request.
 */

import { CODE_MESSAGES, type Code, type requestLicenseFile } from '@keyward/contract'
import type { z } from 'zod'

import type { VendorCall } from '../http/endpoint.ts'
import { ApiError } from '../http/problem.ts'
import { isUnstarted } from '../resources/licenses/rows.ts'
import { issueLicenseFile, selectForFile } from './issue.ts'

type FileRequest = z.output<typeof requestLicenseFile>

/** Returns the error for a rejected check, with status 409. NOT_FOUND also has this status, because a 404 would mean an unknown path. */
function rejection(code: Exclude<Code, 'VALID'>): ApiError {
  return new ApiError(code, CODE_MESSAGES[code], { status: 409 })
}

export async function issueFileForApp(call: VendorCall<unknown, unknown, FileRequest>): Promise<string> {
  const { licenseKey, fingerprint: machineId } = call.body
  const { ip, country } = call.origin()
  const { productId } = call.credential
  const bound = productId === null ? {} : { productId }
  const verdict = await call.dependencies.validators.decide(call, { licenseKey, machineId, ip, country, ...bound })
  if (verdict.code !== 'VALID') throw rejection(verdict.code)
  const license = await selectForFile(call).where('licenses.key', '=', licenseKey).executeTakeFirst()
  const isOfProduct = productId === null || license?.productId === productId
  if (!license || !isOfProduct) throw rejection('NOT_FOUND') // deleted or moved since the verdict
  if (verdict.needsSlot && !isUnstarted(license)) throw new ApiError('MACHINE_NOT_ACTIVE')
  return issueLicenseFile(call, license, machineId ?? null)
}
