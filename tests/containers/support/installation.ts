/**
 * Installs Keyward with compose as docs/operations/install.md describes, from a copy of the project's tracked files. On request, the
 * installation uses the Postgres cluster of docs/operations/failover.md.
 */

import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

import { z } from 'zod'

import { docker, dockerInBackground, type DockerResult } from './docker.ts'

const ROOT = join(import.meta.dirname, '../../..')
/** The host name in the certificate. Callers connect to an address instead of resolving it. */
export const HOST = 'keyward.test'
/** A text that no image may contain. */
export const PLANTED = 'planted-secret-5b0e6c'

const containerSchema = z.object({
  State: z.object({
    Status: z.string(),
    ExitCode: z.int(),
    StartedAt: z.string(),
    OOMKilled: z.boolean(),
    Health: z.object({ Status: z.string() }).optional(),
  }),
  RestartCount: z.int(),
  NetworkSettings: z.object({ Networks: z.record(z.string(), z.object({ IPAddress: z.string() })) }),
})
export type Container = z.infer<typeof containerSchema>

export interface InstallationOptions {
  /** The published port of haproxy. */
  readonly port: number
  readonly variables: Readonly<Record<string, string>>
  /** Whether a Patroni cluster replaces the single Postgres. */
  readonly hasCluster?: boolean
}

/** Creates a certificate, creates `.env` with the commands of the documents, and runs compose. */
export class Installation {
  readonly folder = mkdtempSync(join(tmpdir(), 'keyward-containers-'))
  readonly #project = `keyward-test-${process.pid}`
  readonly #variables: Readonly<Record<string, string>>
  readonly address = '127.0.0.1'
  readonly port: number

  constructor({ port, variables, hasCluster = false }: InstallationOptions) {
    this.port = port
    this.#variables = variables
    chmodSync(this.folder, 0o755)
    const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
    for (const path of tracked) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true })
      cpSync(join(ROOT, path), join(this.folder, path))
    }
    for (const path of [
      '.env',
      'infra/shared/.env',
      'services/validator/src/credentials.json',
      'packages/runtime/src/token.txt',
    ])
      writeFileSync(join(this.folder, path), `${PLANTED}\n`)
    this.#createSecrets(hasCluster)
  }

  get infra(): string {
    return join(this.folder, 'infra')
  }

  /** The path of a file that contains the certificate without the private key. */
  get certificate(): string {
    return join(this.folder, 'tls.crt')
  }

  #createSecrets(hasCluster: boolean): void {
    const commands = this.#documented('install.md', '**1. Create `.env`**')
    const ofCluster = hasCluster ? this.#documented('failover.md', '**2. Add the cluster to `.env`.**') : ''
    execFileSync('bash', ['-c', `${commands}\n${ofCluster}\necho "PLANTED=${PLANTED}" >> .env`], { cwd: this.infra })
    const key = join(this.folder, 'tls.key')
    const subject = ['-subj', `/CN=${HOST}`, '-addext', `subjectAltName=DNS:${HOST}`]
    const files = ['-keyout', key, '-out', this.certificate]
    execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...subject, ...files], {
      stdio: 'ignore',
    })
    mkdirSync(join(this.infra, 'tls'))
    const pem = join(this.infra, 'tls/tls.pem')
    writeFileSync(pem, `${readFileSync(this.certificate, 'utf8')}${readFileSync(key, 'utf8')}`)
    chmodSync(join(this.infra, 'tls'), 0o755)
    chmodSync(pem, 0o644)
    // Replaces the published ports 443 and 80, because they may be in use.
    writeFileSync(join(this.infra, 'ports.yaml'), `services: { haproxy: { ports: !override ['${this.port}:443'] } }\n`)
  }

  /** Returns the commands of the first block after a step of a document, without `cd infra`. */
  #documented(document: string, step: string): string {
    const text = readFileSync(join(this.folder, 'docs/operations', document), 'utf8').split(step)[1] ?? ''
    const [, commands = ''] = /```sh\n(?:cd infra\n)?([^]*?)```/.exec(text) ?? []
    if (commands === '') throw new Error(`${document} has no commands after ${step}`)
    return commands
  }

  compose(args: readonly string[], mayFail = false): DockerResult {
    return docker(this.#composeArguments(args), { cwd: this.infra, env: this.#variables, mayFail })
  }

  /** Runs compose without blocking this process. Resolves to the output of compose. Rejects if compose fails. */
  composeInBackground(args: readonly string[]): Promise<string> {
    return dockerInBackground(this.#composeArguments(args), { cwd: this.infra, env: this.#variables })
  }

  #composeArguments(args: readonly string[]): string[] {
    const files = [...(this.secret('COMPOSE_FILE') || 'compose.yaml').split(':'), 'ports.yaml']
    return ['compose', ...files.flatMap((file) => ['--file', file]), '--project-name', this.#project, ...args]
  }

  /** Returns the value of a variable of `.env`. */
  secret(name: string): string {
    return new RegExp(`^${name}=(.*)$`, 'm').exec(readFileSync(join(this.infra, '.env'), 'utf8'))?.[1] ?? ''
  }

  /** Returns the state of a service's container. */
  inspect(service: string): Container {
    const id = this.compose(['ps', '--all', '--quiet', service]).output.trim()
    return containerSchema.parse(z.array(z.unknown()).parse(JSON.parse(docker(['inspect', id]).output))[0])
  }

  /** Runs a shell command in a service's container. */
  shell(service: string, command: string): string {
    return this.compose(['exec', '--no-TTY', service, 'sh', '-c', command], true).output.trim()
  }

  /** Runs the smoke test against the published port, and returns its output. */
  smokeTest(): string {
    const ran = spawnSync(process.execPath, [join(ROOT, 'infra/smoke-test/main.ts')], {
      encoding: 'utf8',
      env: {
        PATH: process.env['PATH'],
        KEYWARD_URL: `https://${HOST}`,
        KEYWARD_CONNECT_TO: `127.0.0.1:${this.port}`,
        KEYWARD_CA_FILE: this.certificate,
        KEYWARD_OPERATOR_TOKEN: this.secret('KEYWARD_OPERATOR_TOKEN'),
      },
    })
    if (ran.status !== 0) throw new Error(`The smoke test failed:\n${ran.stdout}\n${ran.stderr}`)
    return ran.stdout
  }

  /** Removes the containers, volumes and networks, and the folder. */
  remove(): void {
    this.compose(['down', '--volumes', '--timeout', '30'], true)
    rmSync(this.folder, { recursive: true })
  }
}
