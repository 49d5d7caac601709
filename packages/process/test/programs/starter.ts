/** Program for lifecycle.test.ts. It forks `stoppable.ts` with its own argument. Both write to the same output. */

import { fork } from 'node:child_process'

fork(new URL('stoppable.ts', import.meta.url), [process.argv[2] ?? ''], {
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
})
process.stdout.write('forked\n')
