/**
 * The decision engine decides checks from an index in shared memory, which one thread writes and many threads read. The package imports
 * nothing, does no I/O and reads no clock.
 */

export * from './check.ts'
export { CODE, CODES, type Code } from './codes.ts'
export { BUSY, HASH_WORDS, openIndex, UNKNOWN, type IndexReader } from './read/index-reader.ts'
export { IMAGE_VERSION, LARGE_INDEX_BYTES } from './memory/shared-memory.ts'
export { INDEX_IS_FULL } from './write/capacity.ts'
export { createIndex, type IndexOptions, type IndexWriter } from './write/index-writer.ts'
export { describeImage, type ImagePart } from './write/image.ts'
export type { IndexStats } from './write/stats.ts'
export { MAX_VALUE_BYTES } from './memory/value-set.ts'
export type * from './model.ts'
export { NOT_STARTED, RESTRICTION_TYPES } from './model.ts'
export type { SharedIndex } from './memory/shared-memory.ts'
