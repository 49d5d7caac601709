import { execFile } from 'node:child_process'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

import { expect, test } from 'vitest'

import { listenOn } from '../shared/ports.ts'

const MAIN = fileURLToPath(new URL('../cluster/main.ts', import.meta.url))

test('prints an error that names KEYWARD_EDGE_PORT when the port is taken', async () => {
  const server = createServer((socket) => socket.end())
  const port = await listenOn(server, 0)
  const env = { ...process.env, KEYWARD_EDGE_PORT: String(port) }
  const started = promisify(execFile)(process.execPath, [MAIN], { env, timeout: 30_000 })
  await expect(started).rejects.toMatchObject({
    code: 1,
    stdout: '',
    stderr: `Port ${port} is taken by another program; set KEYWARD_EDGE_PORT to a free port\n`,
  })
  server.close()
})
