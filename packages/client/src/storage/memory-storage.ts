// A storage that lasts as long as the program, for apps that need no offline use across runs.

import type { LicenseStorage } from '../options.ts'

export function memoryStorage(): LicenseStorage {
  let stored: string | null = null
  return {
    async read() {
      return stored
    },
    async write(text) {
      stored = text
    },
  }
}
