/** Lists the scenarios of `npm run bench:local` in the order in which they run. */

import type { Scenario } from '../harness/scenario.ts'
import { alternatives } from './alternatives.ts'
import { batch } from './batch.ts'
import { big } from './big.ts'
import { engine } from './engine.ts'
import { footprint } from './footprint.ts'
import { growth } from './growth.ts'
import { known } from './known.ts'
import { latency } from './latency.ts'
import { pauses } from './pauses.ts'
import { recording } from './recording.ts'
import { sql } from './sql.ts'
import { workers } from './workers.ts'

export const SCENARIOS: readonly Scenario[] = [
  engine,
  known,
  batch,
  sql,
  alternatives,
  big,
  growth,
  footprint,
  latency,
  workers,
  recording,
  pauses,
]
