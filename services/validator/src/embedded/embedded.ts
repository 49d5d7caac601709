/**
 * Runs a validator in another Node program, such as a gateway (docs/api.md#h15). A thread follows the change feed, claims slots and records
 * usage. The program decides checks itself, from the index in shared memory.
 */

import { MessageChannel, Worker } from 'node:worker_threads'

import type { EmbeddedCheck, VerdictV1 } from '@keyward/contract/validation'
import { readConfig } from '@keyward/runtime'

import { environment } from '../config.ts'
import { MainThreadClient } from '../workers/main-thread-client.ts'
import { Checker } from './checker.ts'
import type { EmbeddedSetup, MessageToProgram, MessageToThread, ThreadSetup } from './messages.ts'

export { EmbeddedError } from './checker.ts'

export interface EmbeddedOptions {
  /** The API key with which the program checks licenses. */
  apiKey: string
  /** The variables of a validator (docs/configuration.md). The default is the environment of the process. */
  variables?: Record<string, string | undefined>
  /** The address space that the index reserves. Tests use a small index. */
  reserve?: 'small' | 'large'
}

export interface EmbeddedValidator {
  /** The port of the admin server, with metrics and the readiness. */
  readonly adminPort: number
  /** Resolves when the index is loaded. Checks fail with `UNAVAILABLE` before. */
  readonly loaded: Promise<void>
  /** Resolves when no check can be decided any more. The program must then restart. */
  readonly unusable: Promise<void>
  /**
   * Returns the verdict that `POST /api/v1/validate` returns. Only a check that claims a machine slot or starts a term returns a promise,
   * because it waits for Postgres. Throws or rejects with an EmbeddedError if there is no verdict.
   */
  check(check: EmbeddedCheck): VerdictV1 | Promise<VerdictV1>
  /** Waits for the checks in progress, writes the recorded usage, and ends the thread. */
  close(): Promise<void>
}

/** Starts a validator in this process. Rejects when a variable is invalid or the port of the admin server is in use. */
export async function openEmbedded(options: EmbeddedOptions): Promise<EmbeddedValidator> {
  const { apiKey, variables, reserve = 'large' } = options
  const config = { ...readConfig(environment, variables), drainMs: 0 }
  const { port1, port2 } = new MessageChannel()
  const thread = new Worker(new URL('thread.ts', import.meta.url), { name: 'keyward-embedded' })
  const setup = Promise.withResolvers<EmbeddedSetup>()
  const started = Promise.withResolvers<number>()
  const loaded = Promise.withResolvers<void>()
  const unusable = Promise.withResolvers<void>()
  const ended = Promise.withResolvers<void>()
  let failure: Error | null = null
  thread.on('message', (message: MessageToProgram) => {
    switch (message.type) {
      case 'setup':
        return setup.resolve(message.setup)
      case 'started':
        return started.resolve(message.adminPort)
      case 'loaded':
        return loaded.resolve()
      case 'unusable':
        return unusable.resolve()
      default:
        message satisfies never
    }
  })
  thread.on('error', (error: Error) => {
    failure = error
  })
  thread.on('exit', () => {
    const error = failure ?? new Error('The thread of the embedded validator has ended.')
    port2.close()
    setup.reject(error)
    started.reject(error)
    unusable.resolve()
    ended.resolve()
  })
  started.promise.catch(() => undefined) // if the setup is already rejected
  const first: ThreadSetup = { config, reserve, work: port1 }
  thread.postMessage(first, [port1])
  const checker = new Checker(apiKey, await setup.promise, new MainThreadClient(port2, () => undefined))
  void unusable.promise.then(() => checker.end())
  void ended.promise.then(() => checker.abandon())
  return {
    adminPort: await started.promise,
    loaded: loaded.promise,
    unusable: unusable.promise,
    check: (check) => checker.check(check),
    close: async () => {
      await checker.end()
      thread.postMessage({ type: 'close' } satisfies MessageToThread)
      await ended.promise
    },
  }
}
