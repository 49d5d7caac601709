/**
 * Runs the topology of compose.yaml as processes on this machine: management processes and validators behind haproxy, with TLS and the
 * shipped configuration.
 */

import { join } from 'node:path'

import { ConfigError } from '@keyward/runtime'

import { freePort } from '../shared/ports.ts'
import { startService, untilReady, type ServiceProcess, type ServiceName } from '../shared/service-process.ts'
import { Haproxy, isInstalled } from './balancer.ts'

export interface ClusterOptions {
  /** The database URL for management. */
  databaseUrl: string
  validatorUrl: string
  operatorToken: string
  /** The master key: 32 bytes in base64. */
  masterKey: string
  validators?: number
  managements?: number
  /** The number of worker threads per validator. */
  workers?: number
  /** The port of the balancer. The default is a free port. */
  edgePort?: number
}

interface Ports {
  port: number
  adminPort: number
}

async function freePorts(): Promise<Ports> {
  const port = await freePort()
  return { port, adminPort: await freePort(new Set([port])) }
}

/** A process of the cluster. It keeps its name and ports when it restarts. */
export class Member {
  readonly name: string
  /** The path of the Unix socket of a validator, otherwise null. */
  readonly socketPath: string | null
  readonly #kind: ServiceName
  readonly #env: Record<string, string>
  #service: ServiceProcess | undefined

  constructor(kind: ServiceName, number: number, env: Record<string, string>, folder: string) {
    this.name = `${kind}-${number}`
    this.socketPath = kind === 'validator' ? join(folder, `${this.name}.sock`) : null
    this.#kind = kind
    this.#env = { ...env, ...(this.socketPath !== null && { KEYWARD_VALIDATOR_SOCKET: this.socketPath }) }
  }

  get service(): ServiceProcess {
    if (!this.#service) throw new Error(`${this.name} is not running`)
    return this.#service
  }

  /** Starts the process and resolves when it is ready. */
  async start(): Promise<void> {
    this.#service = await this.#startOn(this.#service ?? (await freePorts()), 3)
    await untilReady(this.name, this.#service.adminPort)
  }

  /** Starts the process. At its first start, retries with other ports, because another program may have taken the port. */
  async #startOn(ports: Ports, attempts: number): Promise<ServiceProcess> {
    const prefix = `KEYWARD_${this.#kind.toUpperCase()}`
    const env = { [`${prefix}_PORT`]: String(ports.port), [`${prefix}_ADMIN_PORT`]: String(ports.adminPort) }
    try {
      return await startService(this.#kind, { ...this.#env, ...env })
    } catch (error) {
      if (this.#service || attempts === 1) throw error
      return this.#startOn(await freePorts(), attempts - 1)
    }
  }

  /** Restarts the process as an orchestrator does: sends SIGTERM, waits for the exit, and starts the program again. */
  async restart(): Promise<void> {
    await this.service.stop()
    await this.start()
  }

  /** Stops the process, if it was ever started. */
  async stop(): Promise<void> {
    await this.#service?.stop()
  }

  /** Sends SIGKILL and resolves when the process has ended. */
  async kill(): Promise<void> {
    process.kill(this.service.pid, 'SIGKILL')
    await this.service.ended
  }
}

export interface Cluster {
  /** The https URL of the balancer. */
  baseUrl: string
  /** The certificate that clients have to trust, in PEM. */
  certificate: string
  /** The URL of haproxy's metrics. */
  metricsUrl: string
  validators: readonly Member[]
  managements: readonly Member[]
  /** Returns the log of the balancer so far. */
  balancerOutput: () => string
  stop: () => Promise<void>
}

/** Starts the cluster and resolves when every process is ready. Throws ConfigError if haproxy or openssl is missing. */
export async function startCluster(options: ClusterOptions): Promise<Cluster> {
  for (const [program, flag] of [
    ['haproxy', '-v'],
    ['openssl', 'version'],
  ] as const)
    if (!isInstalled(program, flag)) throw new ConfigError(`The cluster needs ${program}; install it`)
  const common = {
    PATH: process.env['PATH'] ?? '',
    NODE_OPTIONS: process.env['NODE_OPTIONS'] ?? '',
    KEYWARD_TRUSTED_PROXIES: '127.0.0.1',
    KEYWARD_LOG_LEVEL: process.env['KEYWARD_LOG_LEVEL'] || process.env['LOG_LEVEL'] || 'error',
  }
  const balancer = new Haproxy()
  const members = (kind: ServiceName, count: number, env: Record<string, string>): Member[] =>
    Array.from({ length: count }, (_, index) => new Member(kind, index + 1, env, balancer.folder))
  const validators = members('validator', options.validators ?? 3, {
    ...common,
    KEYWARD_VALIDATOR_DATABASE_URL: options.validatorUrl,
    KEYWARD_VALIDATOR_WORKERS: String(options.workers ?? 1),
  })
  const managements = members('management', options.managements ?? 2, {
    ...common,
    KEYWARD_DATABASE_URL: options.databaseUrl,
    KEYWARD_OPERATOR_TOKEN: options.operatorToken,
    KEYWARD_MASTER_KEY: options.masterKey,
    KEYWARD_MANAGEMENT_RATE_LIMIT: '1000000',
  })
  const all = [...validators, ...managements]
  const stop = async (): Promise<void> => {
    await balancer.stop()
    await Promise.all(all.map((member) => member.stop()))
  }
  try {
    await Promise.all(all.map((member) => member.start()))
    const ports = { https: options.edgePort ?? (await freePort()), http: await freePort(), metrics: await freePort() }
    await balancer.start('haproxy/haproxy.cfg', ports, (text) => replaceServers(replacePorts(text, ports), all))
    return {
      baseUrl: `https://127.0.0.1:${ports.https}`,
      certificate: balancer.certificate,
      metricsUrl: `http://127.0.0.1:${ports.metrics}/metrics`,
      validators,
      managements,
      balancerOutput: () => balancer.output,
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

/** All members share the cores of this machine, so a health check may wait longer than on hosts of their own. */
function replacePorts(text: string, ports: { https: number; http: number; metrics: number }): string {
  return text
    .replace('defaults\n', 'defaults\n    timeout check 10s\n')
    .replace('bind :443', `bind 127.0.0.1:${ports.https}`)
    .replace('bind :80\n', `bind 127.0.0.1:${ports.http}\n`)
    .replace('bind :8404', `bind 127.0.0.1:${ports.metrics}`)
}

/**
 * Inserts the addresses into lines such as `server validator-2 validator-2:8080 port 9080`. Removes lines of other servers. Checks reach the
 * validators over Unix sockets, because the balancer runs on the same host.
 */
function replaceServers(text: string, all: readonly Member[]): string {
  return text.replaceAll(/^ {4}server (\S+) \S+ port \d+$/gm, (_line, name: string) => {
    const member = all.find((one) => one.name === name)
    if (!member) return ''
    const { port, adminPort } = member.service
    const address = member.socketPath === null ? `127.0.0.1:${port}` : `unix@${member.socketPath}`
    return `    server ${name} ${address} port ${adminPort} addr 127.0.0.1`
  })
}
