import type { LicenseStorage } from '../options.ts'

/** Stores the client's text until the program ends. */
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
