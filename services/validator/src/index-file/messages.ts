/** Defines the messages between the main thread and the thread that writes the index file. */

import type { IndexFileContent } from './format.ts'

export interface WriteRequest {
  readonly path: string
  readonly key: Uint8Array
  readonly content: IndexFileContent
}

/** A message of the thread. After `ready` it expects a request. After `copied` the index may change. The others end it. */
export type WriterMessage =
  | { type: 'ready' }
  | { type: 'copied' }
  | { type: 'written'; bytes: number }
  | { type: 'failed'; message: string }
