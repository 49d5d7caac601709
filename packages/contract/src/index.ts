/**
 * The public API as zod schemas, from which all types are inferred. This file exports the schemas that several programs share.
 * Each resource has its own module, such as `@keyward/contract/management/products`.
 */

export * from './codes.ts'
export { evaluateCheck, evaluation } from './dry-run.ts'
export * from './entitlements.ts'
export * from './errors.ts'
export * from './issues.ts'
export * from './text.ts'
export * from './validation.ts'
export * from './vocabulary.ts'
export * from './management/access-rules.ts'
export * from './management/common.ts'
export * from './management/credentials.ts'
export * from './management/customers.ts'
export * from './management/license-files.ts'
export * from './management/licenses.ts'
export * from './management/license-import.ts'
export * from './management/license-operations.ts'
export * from './management/machines.ts'
export * from './management/organizations.ts'
export * from './management/permissions.ts'
