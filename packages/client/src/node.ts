/** Exports the parts of the client that require Node: storage in a file, and the id or the key of the machine. */

export { fileStorage } from './storage/file-storage.ts'
export { machineId } from './machine-id.ts'
export { type MachineKey, machineKey } from './machine-key.ts'
