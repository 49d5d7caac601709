// The SDK for customers' apps: online first, offline with a signed file. Runs in Node and in browsers; what belongs to
// one of them alone is in `@keyward/client/node` and `@keyward/client/browser`.

export { createLicenseClient, type LicenseClient } from './client.ts'
export { memoryStorage } from './storage/memory-storage.ts'
export type { ClientOptions, LicenseStorage, PublicKey } from './options.ts'
export type {
  ConfigurationError,
  ConfigurationReason,
  DeactivationResult,
  FileRefusalCode,
  ImportResult,
  OfflineReason,
  OutageCause,
  RefreshResult,
  RejectionCode,
  Unreachable,
  ValidationResult,
} from './results.ts'
