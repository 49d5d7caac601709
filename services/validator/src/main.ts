/** Starts the validator from the environment, and stops it when it is told to or its parent is gone. */

import { getPriority, setPriority } from 'node:os'

import { announceListening, failStart, leaveMemoryOutOfCoreDumps, onStop, readConfig } from '@keyward/process'

import { environment } from './config.ts'
import { startValidator } from './validator.ts'

/** Nice enough to wait for a worker on the same core, and still sure of a quarter of it. */
const MAIN_THREAD_PRIORITY = 5

leaveMemoryOutOfCoreDumps()
try {
  const validator = await startValidator(readConfig(environment))
  onStop(() => validator.close())
  // Checks go before what is written about them. Linux counts it for this thread alone; the workers are there already.
  // Only upwards: who was started nicer may not become less so.
  setPriority(Math.max(getPriority(), MAIN_THREAD_PRIORITY))
  announceListening(validator)
} catch (error) {
  failStart(error)
}
