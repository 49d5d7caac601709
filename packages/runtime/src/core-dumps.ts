/**
 * Keeps secrets out of core dumps. A dump of a service's memory would contain keys, tokens, the database password and the addresses of
 * callers. In case the operator has not disabled core dumps, this module excludes the memory of the process from them.
 */

import { writeFileSync } from 'node:fs'

/** Excludes the memory of this process from core dumps. Has no effect outside Linux or where `/proc` is read-only. */
export function leaveMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // The system is not Linux, or /proc is read-only, as in some containers.
  }
}
