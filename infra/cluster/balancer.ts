/** Runs haproxy on this machine with the shipped configuration. Only addresses, paths and the certificate are replaced. */

import { execFileSync, spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'

const INFRA = fileURLToPath(new URL('..', import.meta.url))

/** Returns whether a program is installed and exits with 0 for these arguments. */
export function isInstalled(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

export interface BalancerPorts {
  https: number
  http: number
  /** The port of haproxy's metrics. nginx has none. */
  metrics: number
}

export abstract class Balancer {
  #output = ''
  readonly folder = mkdtempSync(join(tmpdir(), 'keyward-balancer-'))
  /** The self-signed certificate that clients have to trust, in PEM. */
  certificate = ''
  #child: ChildProcess | undefined

  /**
   * Starts the balancer and resolves when it listens. `configuration` is a path in `infra/`. `replace` inserts the ports and servers into
   * the text of the configuration. Rejects if the port is taken, or if the program ends or does not listen within about 5 s.
   */
  async start(configuration: string, ports: BalancerPorts, replace: (text: string) => string): Promise<void> {
    chmodSync(this.folder, 0o755)
    const shipped = readFileSync(join(INFRA, configuration), 'utf8')
      .replaceAll('/etc/keyward', this.folder)
      // Replaces the abstract socket, because these sockets exist only on Linux, and their names must be unique on a machine.
      .replaceAll('abns@keyward-older-http', `unix@${this.folder}/older-http`)
    const text = replace(shipped)
    writeFileSync(join(this.folder, 'balancer.conf'), text)
    this.#makeCertificate()
    // Without this check, the code below would mistake another program on the port for the balancer.
    if (await isListening(ports.https)) throw new Error(`Port ${ports.https} is taken by another program`)
    const [program = '', ...args] = this.command(join(this.folder, 'balancer.conf'))
    this.#child = spawn(program, args, { cwd: join(INFRA, 'haproxy'), stdio: ['ignore', 'pipe', 'pipe'] })
    this.#child.stdout?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
    this.#child.stderr?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()))
    for (let attempt = 0; attempt < 500 && this.#child.exitCode === null; attempt++) {
      if ((await isListening(ports.https)) && this.#child.exitCode === null) return
      await sleep(10)
    }
    throw new Error(`The balancer did not start: ${this.output}`)
  }

  /** The output and the log of the balancer so far. */
  get output(): string {
    const log = join(this.folder, 'log')
    return this.#output + (existsSync(log) ? readFileSync(log, 'utf8') : '')
  }

  protected abstract command(configuration: string): string[]

  async stop(): Promise<void> {
    if (this.#child?.exitCode === null) {
      this.#child.kill('SIGTERM')
      await once(this.#child, 'exit')
    }
    rmSync(this.folder, { recursive: true, force: true })
  }

  #makeCertificate(): void {
    const [key, certificate] = [join(this.folder, 'key.pem'), join(this.folder, 'certificate.pem')]
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2']
    const name = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
    execFileSync('openssl', ['req', '-x509', ...options, ...name, '-keyout', key, '-out', certificate], {
      stdio: 'ignore',
    })
    this.certificate = readFileSync(certificate, 'utf8')
    writeFileSync(join(this.folder, 'tls.pem'), readFileSync(certificate, 'utf8') + readFileSync(key, 'utf8'))
  }
}

export class Haproxy extends Balancer {
  protected override command(configuration: string): string[] {
    return ['haproxy', '-db', '-f', configuration]
  }
}

/** Returns whether a program listens on a port of this machine. */
export async function isListening(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}
