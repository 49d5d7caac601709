// Judging a license file on the device, when the service cannot be reached or has just handed one out.

import { judgeLicenseFile, type LicensePayload, verifyLicenseFile } from '@keyward/license-file'

import type { Settings } from '../options.ts'
import type { OfflineReason } from '../results.ts'
import type { Memory } from './store.ts'

export type OfflineJudgement = { ok: true; payload: LicensePayload } | { ok: false; reason: OfflineReason }

/** Whether the remembered file allows to go on at `nowMs` (API document, Client strategy rules 2 to 4). */
export function judgeMemory(settings: Settings, { file, latestSeenMs }: Memory, nowMs: number): OfflineJudgement {
  if (file === null) return { ok: false, reason: 'NO_FILE' }
  const { keys, licenseKey } = settings
  return forApps(judgeLicenseFile(file, { keys, licenseKey, nowMs, latestSeenMs }))
}

/** Whether a file is for this license and signed by a shipped key, whatever its times. */
export function authenticate({ keys, licenseKey }: Settings, file: string): OfflineJudgement {
  const verified = verifyLicenseFile(file, keys)
  const wrong = verified.ok && verified.payload.licenseKey !== licenseKey
  return wrong ? { ok: false, reason: 'WRONG_LICENSE' } : forApps(verified)
}

/** To an app, a file that is no file and a file that nobody signed are the same. */
function forApps(
  judged: { ok: true; payload: LicensePayload } | { ok: false; reason: OfflineReason | 'MALFORMED' },
): OfflineJudgement {
  if (judged.ok) return judged
  return { ok: false, reason: judged.reason === 'MALFORMED' ? 'BAD_SIGNATURE' : judged.reason }
}
