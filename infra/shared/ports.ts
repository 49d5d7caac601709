/** Listens on ports of this machine, chooses free ports, and reports taken ports before a service starts. */

import { randomInt } from 'node:crypto'
import { createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'

import { ConfigError, fullName } from '@keyward/runtime'

/** The time to wait for a taken port. If `npm start` was killed, its services release their ports a moment later. */
const PATIENCE_MS = 3_000

/** Listens on an address and returns the port. Port 0 lets the system choose. Rejects if the port is taken. */
export async function listenOn(server: Server, port: number, host = '127.0.0.1'): Promise<number> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const address = server.address()
  return typeof address === 'object' && address ? address.port : port
}

/**
 * Returns `ports`, a map from names of variables to ports, with a free port in place of each 0. Throws ConfigError with
 * one line per port that is still taken after `patienceMs`.
 */
export async function choosePorts<Name extends string>(
  ports: Record<Name, number>,
  patienceMs = PATIENCE_MS,
): Promise<Record<Name, number>> {
  const startedAt = performance.now()
  for (;;) {
    const taken: string[] = []
    for (const [name, port] of Object.entries<number>(ports))
      if (port !== 0 && !(await isFree(port)))
        taken.push(`Port ${port} is taken by another program; set ${fullName(name)} to a free port`)
    if (taken.length === 0) break
    if (performance.now() - startedAt > patienceMs) throw new ConfigError(taken.join('\n'))
    await sleep(50)
  }
  const chosen = { ...ports }
  const used = new Set<number>(Object.values(ports))
  for (const name in chosen) if (chosen[name] === 0) used.add((chosen[name] = await freePort(used)))
  return chosen
}

/**
 * Returns a port that is free now and not in `used`. The port is below the range that systems use for outgoing connections, so no such
 * connection takes it during a restart.
 */
export async function freePort(used: ReadonlySet<number> = new Set()): Promise<number> {
  for (let attempt = 0; attempt < 100; attempt++) {
    const port = randomInt(10_240, 32_768)
    if (!used.has(port) && (await isFree(port))) return port
  }
  throw new ConfigError('No port between 10240 and 32767 is free; stop programs that use them')
}

function isFree(port: number): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const probe = createServer()
    probe.once('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EADDRINUSE') resolve(false)
      else reject(error)
    })
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve(true)))
  })
}
