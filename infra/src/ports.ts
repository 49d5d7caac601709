/** Ports of this machine: listening on one, and naming one that is taken before anything is started. */
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { ConfigError } from '@keyward/process'

/** The programs of a start that was killed need a moment to notice and to let their ports go. */
const PATIENCE_MS = 3_000

/** Listens on the loopback address and returns the port; 0 lets the system choose. Rejects when it cannot be had. */
export async function listenOn(server: Server, port: number): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, '127.0.0.1', resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}

/** `ports` maps the variable's name to the port; 0 is always free. Throws ConfigError with a line for each taken port. */
export async function checkPorts(ports: Record<string, number>, patienceMs = PATIENCE_MS): Promise<void> {
  const startedAt = performance.now()
  for (;;) {
    const taken: [string, number][] = []
    for (const entry of Object.entries(ports)) if (!(await isFree(entry[1]))) taken.push(entry)
    if (taken.length === 0) return
    if (performance.now() - startedAt > patienceMs) {
      const lines = taken.map(([name, port]) => `Port ${port} is taken by another program; set ${name} to a free port`)
      throw new ConfigError(lines.join('\n'))
    }
    await sleep(50)
  }
}

function isFree(port: number): Promise<boolean> {
  if (port === 0) return Promise.resolve(true)
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
