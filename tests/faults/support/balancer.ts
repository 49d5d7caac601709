/** Runs haproxy in front of validators, with the health checks and retries of the shipped configuration, but without TLS. */

import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { endLater, freePort, type Service, until } from './children.ts'
import { send } from './client.ts'

function isInstalled(): boolean {
  try {
    execFileSync('haproxy', ['-v'], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export const hasHaproxy = isInstalled()

export class Haproxy {
  #child: ChildProcess | null = null
  #folder = ''
  port = 0

  async start(services: readonly Pick<Service, 'port' | 'adminPort'>[]): Promise<void> {
    this.port = await freePort()
    this.#folder = await mkdtemp(join(tmpdir(), 'keyward-haproxy-'))
    const servers = services.map(({ port, adminPort }, i) => `  server v${i} 127.0.0.1:${port} port ${adminPort}`)
    const file = join(this.#folder, 'haproxy.cfg')
    await writeFile(
      file,
      `defaults
  mode http
  option redispatch
  retries 2
  timeout connect 1s
  timeout client 30s
  timeout server 30s
  timeout queue 1s
frontend edge
  bind 127.0.0.1:${this.port}
  http-request set-header x-forwarded-for %[src]
  default_backend validators
backend validators
  balance leastconn
  http-reuse safe
  option httpchk GET /readyz
  retry-on conn-failure empty-response
  default-server check inter 500ms fastinter 200ms fall 2 rise 1 pool-purge-delay 1s
${servers.join('\n')}
`,
    )
    this.#child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' })
    endLater(this.#child)
    await until(async () => (await send(this.port, '/', { method: 'GET' })).status === 404)
  }

  async stop(): Promise<void> {
    const child = this.#child
    if (child === null) return
    child.kill('SIGTERM')
    await once(child, 'exit')
    await rm(this.#folder, { recursive: true, force: true })
  }
}
