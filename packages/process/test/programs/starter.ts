/** A program for lifecycle.test.ts: a parent that forks `stoppable.ts` with its argument and passes the output on. */

import { fork } from 'node:child_process'

fork(new URL('stoppable.ts', import.meta.url), [process.argv[2] ?? ''], {
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
})
process.stdout.write('forked\n')
