// What only Node can do for the client: a file that lasts, and an id of the machine.

export { fileStorage } from './storage/file-storage.ts'
export { machineId } from './machine-id.ts'
