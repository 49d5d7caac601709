/**
 * Collects garbage, now, and gives the memory back. For the moment after a start: what it has left behind would else stay for as
 * long as nothing needs the room (50 MB of a validator), and be compacted while requests wait.
 */

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

export function collectGarbage(): void {
  setFlagsFromString('--expose-gc') // for contexts that are made from here on
  runInNewContext("gc({ type: 'major', flavor: 'last-resort' })")
}
