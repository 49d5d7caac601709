/** Exports the part of the client for browsers: persistent storage. */

export { browserStorage } from './storage/browser-storage.ts'
