/**
 * Runs a Patroni cluster on this machine: three members of etcd, three nodes of Patroni with Postgres, and a haproxy that
 * forwards connections to the primary. `close` ends every process.
 */

import { randomBytes } from 'node:crypto'
import { chmod, chown, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'

import { haproxyConfiguration, type Member, type Mode, patroniConfiguration } from './configuration.ts'
import { Process } from './process.ts'
import type { Tools } from './tools.ts'

const SIZE = 3
const START_MS = 120_000
const POLL_MS = 100
/** The user id of Postgres, Patroni and etcd when this program runs as root. */
const NOBODY = 65_534

export interface ClusterOptions {
  readonly folder: string
  readonly mode: Mode
  readonly freePort: () => Promise<number>
  /** Returns the port at which other nodes reach the Postgres of a node. By default, they use `postgresPort` itself. */
  readonly replicationPort?: (postgresPort: number) => Promise<number>
  readonly fsync?: boolean
}

export interface Node extends Member {
  process: Process
}

export class PatroniCluster {
  readonly #tools: Tools
  readonly #options: ClusterOptions
  readonly password = randomBytes(16).toString('hex')
  readonly nodes: Node[] = []
  readonly #etcd: Process[] = []
  #haproxy: Process | null = null
  /** The port of haproxy. */
  port = 0

  constructor(tools: Tools, options: ClusterOptions) {
    this.#tools = tools
    this.#options = options
  }

  /** The URL of the primary, through haproxy. */
  get url(): string {
    return this.#urlOf(`127.0.0.1:${this.port}`)
  }

  /** The URL with the addresses of all nodes. */
  get urlOfHosts(): string {
    return this.#urlOf(this.nodes.map(({ ports }) => `127.0.0.1:${ports.postgres}`).join())
  }

  /** Starts all processes. Resolves when the primary accepts connections and the other nodes follow it. */
  async start(): Promise<void> {
    const clients = await this.#startEtcd()
    for (let i = 0; i < SIZE; i++) this.nodes.push(await this.#startNode(`node${i + 1}`, clients))
    this.port = await this.#options.freePort()
    const file = join(this.#options.folder, 'haproxy.cfg')
    await writeFile(file, haproxyConfiguration(this.port, this.nodes))
    this.#haproxy = new Process(this.#tools.haproxy, ['-db', '-f', file], { cwd: this.#options.folder })
    await this.untilHealthy(START_MS)
  }

  /** Waits until one node is the primary, the others follow it, and in synchronous mode one of them is synchronous. */
  async untilHealthy(limitMs = START_MS): Promise<void> {
    const endMs = performance.now() + limitMs
    while (!(await this.#isHealthy())) {
      if (performance.now() > endMs) throw new Error(`The cluster is not healthy.\n${this.output().slice(-4_000)}`)
      await sleep(POLL_MS)
    }
  }

  /** Returns the node that Patroni reports as the primary, or null. */
  async primary(): Promise<Node | null> {
    const found = await Promise.all(this.nodes.map(async (node) => ((await this.#has(node, 'primary')) ? node : null)))
    return found.find((node) => node !== null) ?? null
  }

  /** Returns a node that follows the primary: a synchronous one, if there is one. */
  async standby(): Promise<Node> {
    for (const role of ['synchronous', 'replica'])
      for (const node of this.nodes) if (await this.#has(node, role)) return node
    throw new Error('No node is a standby.')
  }

  /** Moves the role of the primary to another node, as for maintenance. */
  async switchover(): Promise<void> {
    const [from, to] = [await this.primary(), await this.standby()]
    if (from === null) throw new Error('No node is the primary.')
    const response = await fetch(`http://127.0.0.1:${from.ports.api}/switchover`, {
      method: 'POST',
      body: JSON.stringify({ leader: from.name, candidate: to.name }),
    })
    if (!response.ok) throw new Error(`Patroni rejected the switchover: ${await response.text()}`)
  }

  /** Restarts a node whose processes were killed. */
  async restart(node: Node): Promise<void> {
    await node.process.ended
    node.process = this.#spawnPatroni(node)
  }

  async freezeEtcd(): Promise<void> {
    await Promise.all(this.#etcd.map((member) => member.signalAll('SIGSTOP')))
  }

  async thawEtcd(): Promise<void> {
    await Promise.all(this.#etcd.map((member) => member.signalAll('SIGCONT')))
  }

  /** Returns the last lines of the output of all programs. */
  output(): string {
    return [...this.#etcd, ...this.nodes.map((node) => node.process)].map((one) => one.output()).join('\n')
  }

  async close(): Promise<void> {
    await this.thawEtcd()
    await this.#haproxy?.kill()
    await Promise.all(this.nodes.map((node) => node.process.kill()))
    await Promise.all(this.#etcd.map((member) => member.kill()))
  }

  #urlOf(hosts: string): string {
    return `postgres://postgres:${this.password}@${hosts}/postgres`
  }

  async #has(node: Node, role: string): Promise<boolean> {
    const url = `http://127.0.0.1:${node.ports.api}/${role}`
    return fetch(url, { signal: AbortSignal.timeout(1_000) }).then(
      async (response) => {
        await response.text()
        return response.ok
      },
      () => false,
    )
  }

  async #isHealthy(): Promise<boolean> {
    if ((await this.primary()) === null) return false
    const roles = await Promise.all(this.nodes.map((node) => this.#has(node, 'replica')))
    if (roles.filter(Boolean).length < SIZE - 1) return false
    if (this.#options.mode === 'asynchronous') return true
    const synchronous = await Promise.all(this.nodes.map((node) => this.#has(node, 'synchronous')))
    return synchronous.includes(true)
  }

  /** Starts the members of etcd. Resolves to the ports for clients. */
  async #startEtcd(): Promise<number[]> {
    const { freePort } = this.#options
    const members = []
    for (let i = 0; i < SIZE; i++) members.push({ name: `etcd${i}`, client: await freePort(), peer: await freePort() })
    const cluster = members.map(({ name, peer }) => `${name}=http://127.0.0.1:${peer}`).join()
    for (const { name, client, peer } of members) {
      const folder = await this.#folder(name)
      const [clientUrl, peerUrl] = [`http://127.0.0.1:${client}`, `http://127.0.0.1:${peer}`]
      const args = Object.entries({
        name,
        'data-dir': join(folder, 'data'),
        'listen-client-urls': clientUrl,
        'advertise-client-urls': clientUrl,
        'listen-peer-urls': peerUrl,
        'initial-advertise-peer-urls': peerUrl,
        'initial-cluster': cluster,
        'initial-cluster-state': 'new',
        'log-level': 'warn',
      }).flatMap(([option, value]) => [`--${option}`, value])
      if (this.#options.fsync === false) args.push('--unsafe-no-fsync')
      this.#etcd.push(new Process(this.#tools.etcd, args, { cwd: folder, ...account() }))
    }
    return members.map(({ client }) => client)
  }

  async #startNode(name: string, etcd: readonly number[]): Promise<Node> {
    const { freePort, mode, fsync = true, replicationPort = (port: number) => Promise.resolve(port) } = this.#options
    const folder = await this.#folder(name)
    const postgres = await freePort()
    const ports = { api: await freePort(), postgres, replication: await replicationPort(postgres) }
    const member = { name, folder, ports }
    const settings = { mode, password: this.password, etcd, binaries: this.#tools.postgres, fsync }
    await this.#write(join(folder, 'patroni.yml'), patroniConfiguration(member, settings))
    return { ...member, process: this.#spawnPatroni(member) }
  }

  #spawnPatroni({ folder }: Member): Process {
    const [program, ...args] = [...this.#tools.patroni, join(folder, 'patroni.yml')]
    const env = { PATH: `${this.#tools.postgres}:/usr/bin:/bin`, PYTHONPATH: this.#tools.modules, LANG: 'C.UTF-8' }
    return new Process(program ?? '', args, {
      cwd: folder,
      env,
      pidFile: join(folder, 'data/postmaster.pid'),
      ...account(),
    })
  }

  /** Creates a folder that only the account of the servers can read. */
  async #folder(name: string): Promise<string> {
    const folder = join(this.#options.folder, name)
    await mkdir(folder, { mode: 0o700 })
    if (process.getuid?.() === 0) await chown(folder, NOBODY, NOBODY)
    return folder
  }

  async #write(file: string, text: string): Promise<void> {
    await writeFile(file, text)
    await chmod(file, 0o600)
    if (process.getuid?.() === 0) await chown(file, NOBODY, NOBODY)
  }
}

function account(): { uid?: number; gid?: number } {
  return process.getuid?.() === 0 ? { uid: NOBODY, gid: NOBODY } : {}
}
