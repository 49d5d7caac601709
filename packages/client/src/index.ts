/**
 * Exports the client for apps, which checks a license online, or offline with a signed file. The client runs in Node and in browsers. The
 * entry points `@keyward/client/node` and `@keyward/client/browser` add a storage for the platform.
 */

export { type CallOptions, createLicenseClient, type LicenseClient } from './client.ts'
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
  Machine,
  MachinesResult,
  OfflineReason,
  OutageCause,
  RefreshResult,
  RejectionCode,
  Unreachable,
  ValidationResult,
} from './results.ts'
