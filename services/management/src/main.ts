/** The program of the management service. Environment variables configure it. */

import {
  announceListening,
  effectiveVariables,
  failStart,
  leaveMemoryOutOfCoreDumps,
  onStop,
  readConfig,
} from '@keyward/runtime'

import { environment, variables } from './config.ts'
import { startManagement } from './server.ts'

leaveMemoryOutOfCoreDumps()
try {
  const management = await startManagement(readConfig(environment))
  onStop(() => management.close())
  announceListening(management)
} catch (error) {
  failStart(error, effectiveVariables(variables), 'management')
}
