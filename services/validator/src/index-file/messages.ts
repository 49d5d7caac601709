/** Defines the interface to the writer of the index file, and the messages between the main thread and the writer's thread. */

import type { IndexFileContent } from './format.ts'

export interface WriteRequest {
  readonly path: string
  readonly key: Uint8Array
  readonly content: IndexFileContent
}

/**
 * `ready` means that the thread expects a request, and `copied` that the index may change. `written` and `failed` are the
 * outcome of the request.
 */
export type WriterMessage =
  | { type: 'ready' }
  | { type: 'copied' }
  | { type: 'written'; bytes: number }
  | { type: 'failed'; message: string }

/** Writes one index file. Every method except `close` rejects when the file cannot be written. */
export interface FileWriter {
  /** Resolves when the writer accepts a request. */
  ready(): Promise<void>
  /** Resolves when the parts of the index have been copied, so that the index may change again. */
  copy(request: WriteRequest): Promise<void>
  /** Resolves to the length of the complete file. */
  written(): Promise<number>
  close(): Promise<void>
}
