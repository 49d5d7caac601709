/**
 * A license file for an app that authenticates with an API key (docs/api.md#f4): only if a check from this caller would be VALID without
 * a new slot. The caller's address and country are matched with the rules and discarded, as in a check.
 */

import { parseNetwork } from '@keyward/address'
import { byteLength, CODE_MESSAGES, type Code, MAX_LICENSE_KEY_BYTES, type requestLicenseFile } from '@keyward/contract'
import type { z } from 'zod'

import { dryRun } from '../evaluate/dry-run.ts'
import type { VendorCall } from '../http/endpoint.ts'
import { ApiError } from '../http/problem.ts'
import { selectLicenses } from '../resources/licenses/rows.ts'
import { issueLicenseFile } from './issue.ts'

type FileRequest = z.output<typeof requestLicenseFile>

/** The check's rejection as a 409, also for NOT_FOUND: a 404 would mean an unknown path. */
function rejection(code: Exclude<Code, 'VALID'>): ApiError {
  return new ApiError(code, CODE_MESSAGES[code], { status: 409 })
}

export async function issueFileForApp(call: VendorCall<unknown, unknown, FileRequest>): Promise<string> {
  const { licenseKey, fingerprint: machineId } = call.body
  // Postgres rejects text with NUL, and no key is longer.
  if (byteLength(licenseKey) > MAX_LICENSE_KEY_BYTES || licenseKey.includes('\u0000')) throw rejection('NOT_FOUND')
  const license = await selectLicenses(call).where('licenses.key', '=', licenseKey).executeTakeFirst()
  if (!license) throw rejection('NOT_FOUND')
  const { ip, country } = call.origin()
  const address = ip === null ? null : parseNetwork(ip)
  const verdict = await dryRun(call, license, { address, country, machineId })
  if (verdict.code !== 'VALID') throw rejection(verdict.code)
  if (verdict.needsSlot) throw new ApiError('MACHINE_NOT_ACTIVE')
  return issueLicenseFile(call, license)
}
