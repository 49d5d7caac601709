/**
 * With TEST_THROUGH=haproxy the services that tests start stand behind haproxy with the configuration that is shipped, and the
 * tests talk to its one address. Only its ports and servers are replaced, and TLS is left out, so that clients need not know.
 */

import { type ChildProcess, spawn } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

/** For tests that say what a caller at another address gets, or what a service does with what no balancer lets through. */
export const isBehindBalancer = process.env['TEST_THROUGH'] === 'haproxy'

export interface Ports {
  readonly port: number
  readonly adminPort: number
}

export interface Edge {
  /** Where tests send their requests. */
  readonly port: number
  close(): Promise<void>
}

const SHIPPED = fileURLToPath(new URL('../../../infra/haproxy', import.meta.url))
const ATTEMPTS = 5
const START_MS = 10_000

/** The service itself, or a balancer before it. */
export async function startEdge(kind: 'validator' | 'management', service: Ports): Promise<Edge> {
  if (!isBehindBalancer) return { port: service.port, close: () => Promise.resolve() }
  for (let attempt = 1; ; attempt++) {
    try {
      return await startBalancer(kind, service)
    } catch (error) {
      // The port was taken by somebody else meanwhile.
      if (attempt === ATTEMPTS) throw error
    }
  }
}

async function startBalancer(kind: string, service: Ports): Promise<Edge> {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-edge-'))
  const configuration = join(folder, 'haproxy.cfg')
  // Below the range from which the system takes ports for outgoing connections.
  const port = randomInt(10_240, 32_768)
  writeFileSync(configuration, configurationFor(kind, service, port, folder))
  const child = spawn('haproxy', ['-db', '-f', configuration], { cwd: SHIPPED, stdio: ['ignore', 'ignore', 'pipe'] })
  const failed = once(child, 'error')
  let output = ''
  child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()))
  const endWithTests = (): unknown => child.kill()
  process.once('exit', endWithTests)
  const close = async (): Promise<void> => {
    process.off('exit', endWithTests)
    await ended(child)
    rmSync(folder, { recursive: true, force: true })
  }
  const problem = await Promise.race([listens(port, child), failed.then(([error]) => String(error))])
  if (problem === null) return { port, close }
  await close()
  throw new Error(`haproxy did not start: ${problem}\n${output}`)
}

function configurationFor(kind: string, service: Ports, port: number, folder: string): string {
  const replaced = readFileSync(join(SHIPPED, 'haproxy.cfg'), 'utf8')
    .replace(/^ *bind :443 .*$/m, `    bind 127.0.0.1:${port}`)
    .replace(/^ *bind :80\n/m, '')
    .replace(/^ *http-request redirect scheme https .*\n/m, '')
    .replace('bind :8404', `bind unix@${folder}/metrics`)
    .replace(
      new RegExp(`^ *server ${kind}-1 .*$`, 'gm'),
      `    server ${kind}-1 127.0.0.1:${service.port} port ${service.adminPort}`,
    )
  return replaced.replace(/^ *server \S+ \w+-\d:.*\n/gm, '')
}

/** Null once it listens, otherwise why it never will. */
async function listens(port: number, child: ChildProcess): Promise<string | null> {
  for (const startMs = performance.now(); performance.now() - startMs < START_MS; await sleep(10)) {
    if (child.exitCode !== null) return `it ended with ${child.exitCode}`
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return null
    } catch {
      // Not yet.
    } finally {
      socket.destroy()
    }
  }
  return 'nobody listens'
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}
