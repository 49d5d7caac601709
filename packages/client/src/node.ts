/** Exports the parts of the client that require Node: storage in a file, and the id of the machine. */

export { fileStorage } from './storage/file-storage.ts'
export { machineId } from './machine-id.ts'
