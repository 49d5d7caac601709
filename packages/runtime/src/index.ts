export {
  startAdminServer,
  type AdminOptions,
  type AdminServer,
  type PostHandler,
  type PostRequest,
  type Readiness,
} from './admin.ts'
export {
  choice,
  ConfigError,
  durationMs,
  effectiveVariables,
  fullName,
  headerName,
  host,
  httpOrigin,
  httpOrigins,
  integer,
  list,
  LOG_LEVELS,
  logLevel,
  type LogLevel,
  oldNames,
  origins,
  parseHttpOrigin,
  port,
  postgresUrl,
  readConfig,
  secret,
  text,
  variable,
  type Variables,
} from './config.ts'
export { LAUNCH } from './launch.ts'
export { announceListening, explainStart, failStart, onStop, reportOldNames, type StopOptions } from './lifecycle.ts'
export { continueTrace, currentTrace, runInTrace, type Trace, traceHeaders } from './trace.ts'
export { createLogger, describeError, type ErrorDescription, type Logger } from './log.ts'
export { leaveMemoryOutOfCoreDumps } from './core-dumps.ts'
export { repeat, type RepeatOptions, throttledLog, type ThrottledLogOptions } from './repeat.ts'
