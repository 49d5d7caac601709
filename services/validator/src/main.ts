/** Starts the validator from the environment. Stops it on a signal, when its parent process ends, or when its index is unusable. */

import {
  announceListening,
  effectiveVariables,
  failStart,
  leaveMemoryOutOfCoreDumps,
  onStop,
  readConfig,
  reportOldNames,
} from '@keyward/runtime'
import { HTTP_LIBRARY } from '@keyward/uwebsockets'

import { environment, variables } from './config.ts'
import { yieldToChecks } from './shared/priority.ts'
import { startValidator } from './validator.ts'
import { WorkerPool } from './workers/pool.ts'

leaveMemoryOutOfCoreDumps()
try {
  const config = readConfig(environment)
  reportOldNames(variables, 'validator', config.logLevel)
  const validator = await startValidator(config, (...parts) => new WorkerPool(...parts))
  const stop = onStop(() => validator.close())
  // A supervisor starts the validator again, with another index. Retries in this process would fail forever.
  void validator.unusable.then(() => stop(1))
  yieldToChecks() // The workers have already started, so they keep their priority.
  announceListening({ ...validator, httpLibrary: HTTP_LIBRARY.release })
} catch (error) {
  failStart(error, effectiveVariables(variables), 'validator')
}
