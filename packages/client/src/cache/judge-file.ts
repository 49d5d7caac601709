/** Judges license files: the stored file during an outage, and each file that the service sends. */

import { judgeLicenseFile, type LicensePayload, ownerProblem, verifyLicenseFile } from '@keyward/license-file'

import type { Settings } from '../options.ts'
import type { OfflineReason } from '../results.ts'
import type { Memory } from './store.ts'

type OfflineJudgement = { ok: true; payload: LicensePayload } | { ok: false; reason: OfflineReason }

/** Decides whether the stored file allows the app to run at `nowMs` (docs/api.md#c2 to #c4). */
export function judgeMemory(
  settings: Settings,
  { file, rejectedAs, latestSeenMs }: Memory,
  nowMs: number,
): OfflineJudgement {
  if (file === null || rejectedAs !== null) return { ok: false, reason: 'NO_FILE' }
  const { keys, licenseKey, productId, machineId } = settings
  return forApps(judgeLicenseFile(file, { keys, licenseKey, productId, machineId, nowMs, latestSeenMs }))
}

/** Decides whether a file is for this license, product and machine, and signed by a shipped key. Ignores the times of the file. */
export function authenticate(settings: Settings, file: string): OfflineJudgement {
  const verified = verifyLicenseFile(file, settings.keys)
  if (!verified.ok) return forApps(verified)
  const problem = ownerProblem(verified.payload, settings)
  return problem === null ? verified : { ok: false, reason: problem }
}

/** Converts `MALFORMED` to `BAD_SIGNATURE`, because apps handle both in the same way. */
function forApps(
  judged: { ok: true; payload: LicensePayload } | { ok: false; reason: OfflineReason | 'MALFORMED' },
): OfflineJudgement {
  if (judged.ok) return judged
  return { ok: false, reason: judged.reason === 'MALFORMED' ? 'BAD_SIGNATURE' : judged.reason }
}
