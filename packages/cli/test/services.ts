import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

import { z } from 'zod'

export interface RunningService {
  url: string
  adminUrl: string
  stop: () => Promise<void>
}

const listening = z.object({ type: z.literal('listening'), port: z.int(), adminPort: z.int() })

export async function startProgram(
  name: 'validator' | 'management',
  env: Record<string, string>,
): Promise<RunningService> {
  const main = fileURLToPath(new URL(`../../../services/${name}/src/main.ts`, import.meta.url))
  const prefix = `KEYWARD_${name.toUpperCase()}`
  const child = fork(main, {
    env: {
      NODE_OPTIONS: process.env['NODE_OPTIONS'],
      ...env,
      [`${prefix}_PORT`]: '0',
      [`${prefix}_ADMIN_PORT`]: '0',
      KEYWARD_LOG_LEVEL: 'silent',
    },
  })
  const ended = once(child, 'exit')
  const message = await Promise.race([
    once(child, 'message').then(([first]: unknown[]) => first),
    ended.then(() => {
      throw new Error(`The process ${name} ended before it listened.`)
    }),
  ])
  const { port, adminPort } = listening.parse(message)
  const adminUrl = `http://127.0.0.1:${adminPort}`
  while (!(await fetch(`${adminUrl}/readyz`)).ok) await sleep(10)
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM')
    await ended
  }
  return { url: `http://127.0.0.1:${port}`, adminUrl, stop }
}
