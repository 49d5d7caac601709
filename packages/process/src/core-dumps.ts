/**
 * Keeps secrets out of core dumps. A dump of a service's memory would contain keys, tokens, the database password and the
 * addresses of callers. Operators should disable core dumps. If they have not, this module excludes the memory of the process
 * from a dump.
 */

import { writeFileSync } from 'node:fs'

/**
 * Excludes the memory of this process from core dumps. The function has no effect outside Linux or where `/proc` is
 * read-only. In these cases the core dump limit of the system applies.
 */
export function leaveMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // The system is not Linux, or /proc is read-only, as in some containers.
  }
}
