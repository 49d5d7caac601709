/** Exports the part of the client that requires a browser: storage in `localStorage`. */

export { browserStorage } from './storage/browser-storage.ts'
