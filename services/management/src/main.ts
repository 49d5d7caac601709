/** The program of the management service. Environment variables configure it. */

import {
  announceListening,
  effectiveVariables,
  failStart,
  leaveMemoryOutOfCoreDumps,
  onStop,
  readConfig,
  reportOldNames,
} from '@keyward/runtime'

import { environment, variables } from './config.ts'
import { startManagement } from './server.ts'

leaveMemoryOutOfCoreDumps()
try {
  const config = readConfig(environment)
  reportOldNames(variables, 'management', config.logLevel)
  const management = await startManagement(config)
  onStop(() => management.close())
  announceListening(management)
} catch (error) {
  failStart(error, effectiveVariables(variables), 'management')
}
