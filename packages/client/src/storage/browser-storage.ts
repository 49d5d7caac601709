// Storage for browsers. A write to localStorage replaces the whole value or fails; there is nothing in between.

import type { LicenseStorage } from '../options.ts'

/** Keeps the client's text in `localStorage`, under a name of its own for every license that the page uses. */
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
