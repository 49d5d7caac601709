/** A program for lifecycle.test.ts: a parent that forks `stoppable.ts`, passes its output on, and can be killed. */
import { fork } from 'node:child_process'

fork(new URL('stoppable.ts', import.meta.url), ['waits'], { stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
