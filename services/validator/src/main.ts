/** Starts the validator from the environment, and stops it when it is told to or its parent is gone. */

import { announceListening, failStart, leaveMemoryOutOfCoreDumps, onStop, readConfig } from '@keyward/process'

import { environment } from './config.ts'
import { startValidator } from './server.ts'

leaveMemoryOutOfCoreDumps()
try {
  const validator = await startValidator(readConfig(environment))
  onStop(() => validator.close())
  announceListening(validator)
} catch (error) {
  failStart(error)
}
