/**
 * The balancer in front of the services that tests start. With TEST_THROUGH=haproxy it is haproxy with the shipped
 * configuration, except for ports, servers and TLS. Otherwise tests send requests to the services directly.
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

/** Whether requests pass through a balancer. Tests skip requests that a balancer does not forward. */
export const isBehindBalancer = process.env['TEST_THROUGH'] === 'haproxy'

export interface Ports {
  readonly port: number
  readonly adminPort: number
}

export interface TestBalancer {
  /** The port to which tests send their requests. */
  readonly port: number
  close(): Promise<void>
}

const SHIPPED = fileURLToPath(new URL('../../../infra/haproxy', import.meta.url))
const ATTEMPTS = 5
const START_MS = 10_000

/** Returns the port of the service itself, or starts a balancer in front of it. */
export async function startBalancer(kind: 'validator' | 'management', service: Ports): Promise<TestBalancer> {
  if (!isBehindBalancer) return { port: service.port, close: () => Promise.resolve() }
  for (let attempt = 1; ; attempt++) {
    try {
      return await startHaproxy(kind, service)
    } catch (error) {
      // Another program may have taken the port in the meantime.
      if (attempt === ATTEMPTS) throw error
    }
  }
}

async function startHaproxy(kind: string, service: Ports): Promise<TestBalancer> {
  const folder = mkdtempSync(join(tmpdir(), 'keyward-balancer-'))
  const configuration = join(folder, 'haproxy.cfg')
  // The port is below the range that Linux assigns to outgoing connections, so no such connection can occupy it.
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
    .replaceAll('abns@keyward-older-http', `unix@${folder}/older-http`)
    .replace(
      new RegExp(`^ *server ${kind}-1 .*$`, 'gm'),
      `    server ${kind}-1 127.0.0.1:${service.port} port ${service.adminPort}`,
    )
  return replaced.replace(/^ *server \S+ \w+-\d:.*\n/gm, '')
}

/** Returns null when the balancer listens, or the reason why it does not. */
async function listens(port: number, child: ChildProcess): Promise<string | null> {
  for (const startMs = performance.now(); performance.now() - startMs < START_MS; await sleep(10)) {
    if (child.exitCode !== null) return `the process ended with exit code ${child.exitCode}`
    const socket = connect(port, '127.0.0.1')
    try {
      await once(socket, 'connect')
      return null
    } catch {
      // The balancer does not listen yet.
    } finally {
      socket.destroy()
    }
  }
  return `nothing listens on port ${port}`
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return
  child.kill()
  await once(child, 'exit')
}
