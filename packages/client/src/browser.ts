/** What only browsers have for the client: storage that survives the page. */

export { browserStorage } from './storage/browser-storage.ts'
