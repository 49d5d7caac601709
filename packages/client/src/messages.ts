/** The messages for people about an outage. All clients of the project use the same texts. */

import type { OfflineReason } from './results.ts'

export const OFFLINE_MESSAGES: Readonly<Record<OfflineReason, string>> = {
  NO_FILE: 'The license could not be checked. Connect to the internet and try again.',
  BAD_SIGNATURE: 'The stored license file is damaged. Connect to the internet and try again.',
  UNKNOWN_KEY: 'This version of the app cannot read the stored license file. Connect to the internet and try again.',
  WRONG_LICENSE: 'The stored license file belongs to another license key. Connect to the internet and try again.',
  WRONG_PRODUCT: 'The stored license file belongs to another product. Connect to the internet and try again.',
  WRONG_MACHINE: 'The stored license file belongs to another machine. Connect to the internet and try again.',
  FILE_EXPIRED: 'The license has expired. Renew the license, connect to the internet and try again.',
  REFRESH_NEEDED: 'The license must be checked online again. Connect to the internet and try again.',
  CLOCK_SET_BACK: 'The clock of this machine is wrong. Set the correct date and time and try again.',
}

export const MESSAGE_AFTER_REJECTION =
  'The last online check rejected the license, or it was deactivated on this machine. Connect to the internet and try again.'

export const UNREACHABLE_MESSAGE = 'The license service cannot be reached. Connect to the internet and try again.'

/** Returns the message of an offline refusal. `rejectedAs` is the code that ended the use of the file, or null. */
export function offlineMessage(reason: OfflineReason, rejectedAs: string | null): string {
  return rejectedAs === null ? OFFLINE_MESSAGES[reason] : MESSAGE_AFTER_REJECTION
}
