export {
  isConnectionFailure,
  isDataRejected,
  isDuplicate,
  isPermissionDenied,
  isRetryable,
  isSchemaMissing,
  isServerUnavailable,
  isDiskFull,
  isStandby,
  isQueryTimeout,
  isTooSlow,
  sqlState,
  violatedConstraint,
} from './errors.ts'
export { FEATURES } from './features.ts'
export type * from './feed/entities.ts'
export { lastPublished, mayContinue, openChangeLog } from './feed/history.ts'
export { type LoadedFeed, loadFeed, type LoadOptions } from './feed/load.ts'
export { type Listener, listenForChanges, type ListenOptions } from './feed/listen.ts'
export { KEEP_LOG_MS, pruneFeed } from './feed/prune.ts'
export {
  LARGE_CHANGE_PASSES,
  type LargeChange,
  type LargeChangeOptions,
  type LargePage,
  readLargeChange,
} from './feed/large-change.ts'
export { type FeedReading, type FeedReadOptions, MAX_CHANGES, readFeed, type RowId } from './feed/read.ts'
export { bytesToUuid, machineKey, toHex, uuidToBytes, uuidv7, uuidv7Bytes } from './ids.ts'
export { readDecideSecret } from './internal-keys.ts'
export { NotMigrated, requireMigrated } from './migrations.ts'
export { dropOldPartitions } from './usage/partitions.ts'
export { createPool, type PoolOptions } from './pool.ts'
export { Notifier } from './notifier.ts'
export { readReplication, type Replication } from './replication.ts'
export type * from './columns.ts'
export type * from './schema.ts'
export { createSecret, hashSecret, parseSecret, type Secret, type SecretKind } from './secrets.ts'
export {
  type Claim,
  type ClaimAnswer,
  type ClaimOutcome,
  claimSlots,
  type Release,
  type ReleaseAnswer,
  type ReleaseOutcome,
  releaseSlots,
} from './slots/slots.ts'
export {
  endStuckValidators,
  forgetValidator,
  noteValidator,
  type ValidatorDetails,
  type ValidatorNote,
} from './validators.ts'
export {
  type ActivityColumns,
  BATCH_ROWS,
  countRows,
  type RecordBatch,
  splitBatch,
  writeBehind,
} from './usage/write-behind.ts'
