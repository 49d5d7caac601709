/** The parts of the client that need Node: storage in a file and an id of the machine. */

export { fileStorage } from './storage/file-storage.ts'
export { machineId } from './machine-id.ts'
