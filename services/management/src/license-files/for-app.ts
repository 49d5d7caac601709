/**
 * A license file for an app that calls with the organization's API key: only where a check from this very caller would be VALID
 * without taking a new slot. The caller's address and country are compared with the rules and discarded, as in a check.
 */
import { parseNetwork } from '@keyward/address'
import { byteLength, CODE_MESSAGES, type Code, MAX_LICENSE_KEY_BYTES, type requestLicenseFile } from '@keyward/contract'
import type { z } from 'zod'

import { dryRun } from '../evaluate/dry-run.ts'
import type { VendorCall } from '../http/endpoint.ts'
import { Refusal } from '../http/problem.ts'
import { selectLicenses } from '../resources/licenses/show.ts'
import { issueLicenseFile } from './issue.ts'

type FileRequest = z.output<typeof requestLicenseFile>

function refuseCheck(code: Exclude<Code, 'VALID'>): Refusal {
  return new Refusal(code, CODE_MESSAGES[code], { status: 409 })
}

export async function issueFileForApp(call: VendorCall<unknown, unknown, FileRequest>): Promise<string> {
  const { db, organizationId, body } = call
  const { licenseKey, fingerprint: machineId } = body
  // Postgres does not take NUL in a text at all.
  if (byteLength(licenseKey) > MAX_LICENSE_KEY_BYTES || licenseKey.includes('\u0000')) throw refuseCheck('NOT_FOUND')
  const license = await selectLicenses(db, organizationId).where('licenses.key', '=', licenseKey).executeTakeFirst()
  if (!license) throw refuseCheck('NOT_FOUND')
  const { ip, country } = call.client()
  const address = ip === null ? null : parseNetwork(ip)
  const verdict = await dryRun(db, organizationId, license, { address, country, machineId })
  if (verdict.code !== 'VALID') throw refuseCheck(verdict.code)
  if (verdict.needsSlot) throw new Refusal('MACHINE_NOT_ACTIVE')
  return issueLicenseFile(call, license)
}
