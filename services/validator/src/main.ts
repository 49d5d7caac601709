/** Starts the validator from the environment. Stops it on a signal, when its parent process ends, or when its index is unusable. */

import { getPriority, setPriority } from 'node:os'

import {
  announceListening,
  effectiveVariables,
  failStart,
  leaveMemoryOutOfCoreDumps,
  onStop,
  readConfig,
} from '@keyward/runtime'
import { HTTP_LIBRARY } from '@keyward/uwebsockets'

import { environment, variables } from './config.ts'
import { startValidator } from './validator.ts'

/**
 * The niceness of the main thread. With this value, the thread yields to a worker on the same core, but still receives about a
 * quarter of the core.
 */
const MAIN_THREAD_NICENESS = 5

leaveMemoryOutOfCoreDumps()
try {
  const validator = await startValidator(readConfig(environment))
  const stop = onStop(() => validator.close())
  // A supervisor starts the validator again, with another index. Retries in this process would fail forever.
  void validator.unusable.then(() => stop(1))
  // Checks have priority over the recording of checks. On Linux the call affects only the main thread, because the workers have
  // already started. The niceness never decreases, because unprivileged processes may not decrease it.
  setPriority(Math.max(getPriority(), MAIN_THREAD_NICENESS))
  announceListening({ ...validator, httpLibrary: HTTP_LIBRARY.release })
} catch (error) {
  failStart(error, effectiveVariables(variables), 'validator')
}
