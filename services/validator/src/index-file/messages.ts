/** Defines the messages between the main thread and the thread that writes the index file. */

import type { IndexFileContent } from './format.ts'

export interface WriteRequest {
  readonly path: string
  readonly key: Uint8Array
  readonly content: IndexFileContent
}

/** `ready` means that the thread expects a request, and `copied` that the index may change. The others are the outcome. */
export type WriterMessage =
  | { type: 'ready' }
  | { type: 'copied' }
  | { type: 'written'; bytes: number }
  | { type: 'failed'; message: string }
