/**
 * Keeps secrets out of core dumps. A dump of a service would contain its keys, tokens, the password of the database and
 * addresses of callers. Operators should turn dumps off; where they have not, this excludes the memory from them.
 */

import { writeFileSync } from 'node:fs'

/** Works on Linux. Elsewhere, and where `/proc` is read-only, it does nothing and the limit of the system applies. */
export function leaveMemoryOutOfCoreDumps(): void {
  try {
    writeFileSync('/proc/self/coredump_filter', '0')
  } catch {
    // Not Linux, or a container with a read-only /proc.
  }
}
