/**
 * Stops in the way that the first argument selects, and prints a line when a stop begins. lifecycle.test.ts runs this
 * program.
 */

import { announceListening, onStop } from '../../src/index.ts'

const mode = process.argv[2]
if (mode === 'late') await new Promise((resolve) => process.once('disconnect', resolve))

const stop = onStop(
  async () => {
    process.stdout.write('stopping\n')
    if (mode === 'fails') throw new Error('the disk is gone')
    if (mode === 'hangs') await new Promise(() => {})
    await new Promise((resolve) => setTimeout(resolve, 100))
    process.stdout.write('stopped\n')
  },
  { limitMs: mode === 'hangs' ? 200 : 5_000 },
)
setInterval(() => {}, 1_000)
announceListening({ port: 1, adminPort: 2 })
process.stdout.write('ready\n')
if (mode === 'itself') stop(7)
