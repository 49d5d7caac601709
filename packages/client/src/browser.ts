/** The part of the client that needs a browser: storage that outlives the page. */

export { browserStorage } from './storage/browser-storage.ts'
