/**
 * Exports the functions that use kysely. Validators do not import this file, because without kysely they start faster and their garbage
 * collector traverses 3 MB less.
 */

export { discardLast, executeLast } from './last-statements.ts'
export { runPipelined } from './pipelined.ts'
export { createDatabase } from './query-builder.ts'
export { claimSlot, releaseSlot } from './slots/in-transaction.ts'
export { together } from './together.ts'
export { type ActivityEntry, type IssuedFile, recordActivity, recordFilesIssued } from './usage/activity.ts'
