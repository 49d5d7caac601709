/** Starts the validator from the environment, and stops it on a signal or when its parent process ends. */

import { getPriority, setPriority } from 'node:os'

import {
  announceListening,
  effectiveVariables,
  failStart,
  leaveMemoryOutOfCoreDumps,
  onStop,
  readConfig,
} from '@keyward/process'

import { environment, variables } from './config.ts'
import { startValidator } from './validator.ts'

/** Low enough to yield to a worker on the same core, and high enough for about a quarter of that core. */
const MAIN_THREAD_NICENESS = 5

leaveMemoryOutOfCoreDumps()
try {
  const validator = await startValidator(readConfig(environment))
  onStop(() => validator.close())
  // Checks have priority over recording them. On Linux this affects the main thread alone, since the workers run already.
  // It is never lowered: a process may not become less nice than it was started.
  setPriority(Math.max(getPriority(), MAIN_THREAD_NICENESS))
  announceListening(validator)
} catch (error) {
  failStart(error, effectiveVariables(variables))
}
