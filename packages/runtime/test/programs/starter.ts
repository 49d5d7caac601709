/** Forks `stoppable.ts`, which gets this program's argument and writes to this program's output. lifecycle.test.ts runs this program. */

import { fork } from 'node:child_process'

fork(new URL('stoppable.ts', import.meta.url), [process.argv[2] ?? ''], {
  stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
})
process.stdout.write('forked\n')
