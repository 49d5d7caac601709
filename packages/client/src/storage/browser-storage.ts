/** Storage for browsers. A write to `localStorage` either replaces the whole value or fails. */

import type { LicenseStorage } from '../options.ts'

/** Stores the client's text in `localStorage` under `name`. */
export function browserStorage(name = 'keyward-license'): LicenseStorage {
  return {
    async read() {
      return globalThis.localStorage.getItem(name)
    },
    async write(text) {
      globalThis.localStorage.setItem(name, text)
    },
  }
}
