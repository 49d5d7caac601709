import { spawn } from 'node:child_process'
import { once } from 'node:events'

import { expect, test } from 'vitest'

test('stops on SIGTERM when no process reads its log any more', async () => {
  const source = `
    import { createLogger } from '${new URL('../src/log.ts', import.meta.url).href}'
    const log = createLogger('orphan')
    process.on('SIGTERM', () => { for (let i = 0; i < 1_000; i++) log.info('ends'); process.exit(0) })
    log.info('begins')
    setInterval(() => undefined, 1_000)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', source], { stdio: ['ignore', 'pipe', 'ignore'] })
  const ended = once(child, 'exit')
  await once(child.stdout, 'data')
  child.stdout.destroy()
  await new Promise((resolve) => setTimeout(resolve, 100))
  child.kill('SIGTERM')
  const late = setTimeout(() => child.kill('SIGKILL'), 5_000)
  expect(await ended).toEqual([0, null])
  clearTimeout(late)
})
