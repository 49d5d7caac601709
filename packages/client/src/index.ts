/**
 * The SDK for customers' apps: online first, offline with a signed file. Runs in Node and in browsers. The entry points
 * `@keyward/client/node` and `@keyward/client/browser` add what only one of them provides.
 */

export { createLicenseClient, type LicenseClient } from './client.ts'
export { memoryStorage } from './storage/memory-storage.ts'
export type { ClientOptions, LicenseStorage, PublicKey } from './options.ts'
export type {
  ConfigurationError,
  ConfigurationReason,
  DeactivationResult,
  Entitlements,
  EntitlementValue,
  FileRefusalCode,
  ImportResult,
  OfflineReason,
  OutageCause,
  RefreshResult,
  RejectionCode,
  Unreachable,
  ValidationResult,
} from './results.ts'
