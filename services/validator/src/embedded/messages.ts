/** Defines the messages between a program that embeds the validator and the thread that follows the change feed. */

import type { MessagePort } from 'node:worker_threads'

import type { ValidatorConfig } from '../config.ts'
import type { WorkerSetup } from '../shared/messages.ts'

/** The first message to the thread. */
export interface ThreadSetup {
  config: ValidatorConfig
  reserve: 'small' | 'large'
  /** The port for the messages about claims and API keys. */
  work: MessagePort
}

export type MessageToThread = { type: 'close' }

/** The shared memory from which the embedding program decides checks. */
export type EmbeddedSetup = Pick<
  WorkerSetup,
  'index' | 'control' | 'counters' | 'recheckThrottle' | 'renewalThrottle' | 'leases' | 'ring'
>

export type MessageToProgram =
  | { type: 'setup'; setup: EmbeddedSetup }
  /** The admin server listens, so the thread has started. */
  | { type: 'started'; adminPort: number }
  | { type: 'loaded' }
  /** The index cannot be used any more. */
  | { type: 'unusable' }
