/**
 * Runs Kubernetes with one node on this machine: etcd, the programs of programs.ts, the containers of Docker, and a name server. Pods have
 * addresses of a bridge that exists only for the cluster. Everything is removed by `stop`.
 */

import { type ChildProcess, execFile, execFileSync, spawn, spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { networkInterfaces, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

import { provideBaseImages } from '../../containers/support/base-images.ts'
import { docker } from '../../containers/support/docker.ts'
import { freePort } from '../../faults/support/children.ts'
import { type Program, providePrograms } from './programs.ts'

const NODE = 'keyward-node'
const BRIDGE = 'keyward-pods'
const PODS = '10.244.73.0/24'
const SERVICES = '10.96.0.0/16'
/** The address of the bridge, at which pods reach the name server. */
const GATEWAY = '10.244.73.1'
const PAUSE_IMAGE = 'keyward-test/pause:1'
/** A container that only keeps the network of a pod. */
const PAUSE = ['FROM keyward-test/debian', `CMD ["sh", "-c", "trap 'exit 0' TERM INT; sleep infinity & wait"]`]
const NAME_SERVER = join(import.meta.dirname, 'name-server.ts')
const START_MS = 120_000

export class Cluster {
  readonly folder = mkdtempSync(join(tmpdir(), 'keyward-kubernetes-'))
  readonly #processes: ChildProcess[] = []
  readonly #firewall = execFileSync('iptables-save', { encoding: 'utf8' })

  /** The address of the node, at which the ports of services are published. */
  get address(): string {
    const all = Object.entries(networkInterfaces()).filter(
      ([name]) => name !== BRIDGE && !/^(docker|br-|veth)/.test(name),
    )
    const found = all.flatMap(([, list]) => list ?? []).find(({ family, internal }) => family === 'IPv4' && !internal)
    if (found === undefined) throw new Error('This machine has no IPv4 address except its loopback address.')
    return found.address
  }

  /** Starts the cluster. Resolves when the node is ready for pods. */
  async start(): Promise<void> {
    const programs = providePrograms()
    provideBaseImages()
    this.#makePauseImage()
    for (const part of ['pki', 'logs', 'network', 'kubelet']) mkdirSync(join(this.folder, part))
    this.#makeBridge()
    this.#makeCertificates()
    const [store, peers, api] = [await freePort(), await freePort(), await freePort()]
    this.#writeConfiguration(api)
    this.#run('etcd', 'etcd', {
      'data-dir': join(this.folder, 'etcd'),
      'listen-client-urls': `http://127.0.0.1:${store}`,
      'advertise-client-urls': `http://127.0.0.1:${store}`,
      'listen-peer-urls': `http://127.0.0.1:${peers}`,
      'initial-advertise-peer-urls': `http://127.0.0.1:${peers}`,
      'initial-cluster': `default=http://127.0.0.1:${peers}`,
      'unsafe-no-fsync': 'true',
    })
    this.#startControl(programs, store, api)
    await this.#until('the API', () => this.#try(['get', '--raw', '/readyz']) === 'ok')
    await this.#startNode(programs)
    this.#spawn('names', process.execPath, [NAME_SERVER, GATEWAY])
    await this.#until('the node', () => this.#try(['get', 'nodes']).includes(' Ready '))
  }

  /** Runs kubectl and returns its output. Throws if it fails. */
  kubectl(args: readonly string[], input?: string): string {
    const options = {
      cwd: this.folder,
      encoding: 'utf8',
      input,
      maxBuffer: 64 * 2 ** 20,
      env: this.environment,
    } as const
    const { status, stdout, stderr } = spawnSync('kubectl', args, options)
    if (status !== 0) throw new Error(`kubectl ${args.join(' ')} failed: ${`${stdout}\n${stderr}`.slice(-2_000)}`)
    return stdout
  }

  /** Runs kubectl without blocking this process. Rejects if it fails. */
  async kubectlInBackground(args: readonly string[]): Promise<void> {
    await promisify(execFile)('kubectl', args, { cwd: this.folder, env: this.environment })
  }

  /** The environment in which kubectl uses this cluster. */
  get environment(): NodeJS.ProcessEnv {
    return { ...process.env, KUBECONFIG: this.#pathOf('admin.kubeconfig') }
  }

  async stop(): Promise<void> {
    // Deleting the pods lets the kubelet unmount their volumes.
    this.#try(['delete', 'namespace', 'keyward', 'postgres', '--timeout=60s', '--ignore-not-found'])
    for (const child of this.#processes.toReversed()) {
      const ended = new Promise((resolve) => child.once('exit', resolve))
      if (child.exitCode === null && child.kill()) await Promise.race([ended, sleep(10_000)])
      child.kill('SIGKILL')
    }
    const left = docker(['ps', '--all', '--quiet', '--filter', 'label=io.kubernetes.pod.name'], {
      mayFail: true,
    }).output
    if (left.trim() !== '') docker(['rm', '--force', ...left.trim().split('\n')], { mayFail: true })
    for (const line of readFileSync('/proc/mounts', 'utf8').split('\n').toReversed()) {
      const target = line.split(' ')[1] ?? ''
      if (target.startsWith(this.folder)) spawnSync('umount', [target])
    }
    spawnSync('ip', ['link', 'delete', BRIDGE])
    spawnSync('iptables-restore', { input: this.#firewall })
    rmSync(this.folder, { recursive: true, force: true })
  }

  #makePauseImage(): void {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-pause-'))
    writeFileSync(join(folder, 'Dockerfile'), PAUSE.join('\n'))
    docker(['build', '--tag', PAUSE_IMAGE, folder])
    rmSync(folder, { recursive: true })
  }

  #makeBridge(): void {
    execFileSync('ip', ['link', 'add', BRIDGE, 'type', 'bridge'])
    execFileSync('ip', ['address', 'add', `${GATEWAY}/24`, 'dev', BRIDGE])
    execFileSync('ip', ['link', 'set', BRIDGE, 'up'])
    // Docker drops forwarded packets of networks that are not its own.
    execFileSync('iptables', ['--policy', 'FORWARD', 'ACCEPT'])
  }

  #makeCertificates(): void {
    const openssl = (...args: string[]): unknown =>
      execFileSync('openssl', args, { cwd: join(this.folder, 'pki'), stdio: 'ignore' })
    const days = ['-days', '2']
    const created = ['-newkey', 'rsa:2048', '-nodes']
    const authority = ['-subj', '/CN=authority', '-addext', 'basicConstraints=critical,CA:true']
    openssl('req', '-x509', ...created, '-keyout', 'ca.key', '-out', 'ca.crt', ...days, ...authority)
    const sign = (name: string, subject: string, names: string): void => {
      const extensions = join(this.folder, 'pki', `${name}.ext`)
      writeFileSync(extensions, `subjectAltName=${names}\nextendedKeyUsage=serverAuth,clientAuth\n`)
      openssl('req', ...created, '-keyout', `${name}.key`, '-out', `${name}.csr`, '-subj', subject)
      const signer = ['-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial']
      openssl('x509', '-req', '-in', `${name}.csr`, ...signer, '-out', `${name}.crt`, ...days, '-extfile', extensions)
    }
    sign('api', '/CN=api', 'IP:127.0.0.1,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default.svc')
    sign('admin', '/O=system:masters/CN=admin', 'DNS:admin')
    sign('node', `/O=system:nodes/CN=system:node:${NODE}`, `DNS:${NODE},IP:127.0.0.1,IP:${this.address}`)
    openssl('genrsa', '-out', 'accounts.key', '2048')
    openssl('rsa', '-in', 'accounts.key', '-pubout', '-out', 'accounts.pub')
  }

  #writeConfiguration(api: number): void {
    const pki = (name: string): string => this.#pathOf(`pki/${name}`)
    const cluster = { server: `https://127.0.0.1:${api}`, 'certificate-authority': pki('ca.crt') }
    const user = { 'client-certificate': pki('admin.crt'), 'client-key': pki('admin.key') }
    this.#writeJson('admin.kubeconfig', {
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'test', cluster }],
      users: [{ name: 'admin', user }],
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'admin' } }],
      'current-context': 'test',
    })
    this.#writeJson('network/10-pods.conflist', {
      cniVersion: '0.3.1',
      name: 'pods',
      plugins: [
        {
          type: 'bridge',
          bridge: BRIDGE,
          isGateway: true,
          ipMasq: true,
          hairpinMode: true,
          ipam: {
            type: 'host-local',
            ranges: [[{ subnet: PODS }]],
            routes: [{ dst: '0.0.0.0/0' }],
            dataDir: this.#pathOf('network-data'),
          },
        },
        { type: 'portmap', capabilities: { portMappings: true } },
      ],
    })
  }

  #startControl(programs: Readonly<Record<Program, string>>, store: number, api: number): void {
    const pki = (name: string): string => this.#pathOf(`pki/${name}`)
    this.#run('api', programs['kube-apiserver'], {
      'etcd-servers': `http://127.0.0.1:${store}`,
      'secure-port': String(api),
      'advertise-address': this.address,
      'tls-cert-file': pki('api.crt'),
      'tls-private-key-file': pki('api.key'),
      'client-ca-file': pki('ca.crt'),
      'service-cluster-ip-range': SERVICES,
      'service-account-key-file': pki('accounts.pub'),
      'service-account-signing-key-file': pki('accounts.key'),
      'service-account-issuer': 'https://kubernetes.default.svc',
      'authorization-mode': 'AlwaysAllow',
      'kubelet-client-certificate': pki('admin.crt'),
      'kubelet-client-key': pki('admin.key'),
      // The name of the node does not resolve.
      'kubelet-preferred-address-types': 'InternalIP',
    })
    const shared = { kubeconfig: this.#pathOf('admin.kubeconfig'), 'leader-elect': 'false', port: '0' }
    this.#run('controllers', programs['kube-controller-manager'], {
      ...shared,
      'secure-port': '0',
      'service-account-private-key-file': pki('accounts.key'),
      'root-ca-file': pki('ca.crt'),
    })
    this.#run('scheduler', programs['kube-scheduler'], { ...shared, 'secure-port': '0' })
  }

  async #startNode(programs: Readonly<Record<Program, string>>): Promise<void> {
    const pki = (name: string): string => this.#pathOf(`pki/${name}`)
    const [port, health, proxyHealth, proxyMetrics] = await Promise.all([
      freePort(),
      freePort(),
      freePort(),
      freePort(),
    ])
    this.#writeJson('kubelet.json', {
      apiVersion: 'kubelet.config.k8s.io/v1beta1',
      kind: 'KubeletConfiguration',
      cgroupDriver: 'cgroupfs',
      clusterDNS: [GATEWAY],
      clusterDomain: 'cluster.local',
      failSwapOn: false,
      port,
      healthzPort: health,
      authentication: {
        anonymous: { enabled: false },
        webhook: { enabled: false },
        x509: { clientCAFile: pki('ca.crt') },
      },
      authorization: { mode: 'AlwaysAllow' },
      tlsCertFile: pki('node.crt'),
      tlsPrivateKeyFile: pki('node.key'),
      // Kubernetes 1.22 and newer allow this setting without an option.
      allowedUnsafeSysctls: ['net.ipv4.ip_unprivileged_port_start'],
      evictionHard: { 'memory.available': '100Mi', 'nodefs.available': '1%', 'imagefs.available': '1%' },
      imageGCHighThresholdPercent: 100,
    })
    const shared = { kubeconfig: this.#pathOf('admin.kubeconfig'), 'hostname-override': NODE }
    this.#run('kubelet', programs.kubelet, {
      ...shared,
      config: this.#pathOf('kubelet.json'),
      'root-dir': this.#pathOf('kubelet'),
      'cert-dir': this.#pathOf('pki'),
      'network-plugin': 'cni',
      'cni-bin-dir': '/usr/lib/cni',
      'cni-conf-dir': this.#pathOf('network'),
      'cni-cache-dir': this.#pathOf('network-cache'),
      'pod-infra-container-image': PAUSE_IMAGE,
    })
    this.#run('proxy', programs['kube-proxy'], {
      ...shared,
      'cluster-cidr': PODS,
      'proxy-mode': 'iptables',
      'healthz-bind-address': `127.0.0.1:${proxyHealth}`,
      'metrics-bind-address': `127.0.0.1:${proxyMetrics}`,
    })
  }

  #run(name: string, program: string, flags: Readonly<Record<string, string>>): void {
    this.#spawn(
      name,
      program,
      Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`),
    )
  }

  #spawn(name: string, program: string, args: readonly string[]): void {
    const log = openSync(this.#pathOf(`logs/${name}.log`), 'a')
    this.#processes.push(spawn(program, args, { cwd: this.folder, stdio: ['ignore', log, log], env: this.environment }))
  }

  /** Returns the output of kubectl, or '' if it fails. */
  #try(args: readonly string[]): string {
    try {
      return this.kubectl(args)
    } catch {
      return ''
    }
  }

  async #until(what: string, isTrue: () => boolean): Promise<void> {
    for (const endMs = performance.now() + START_MS; !isTrue(); await sleep(500))
      if (performance.now() > endMs)
        throw new Error(`${what} did not become ready. The logs are in ${this.folder}/logs.`)
  }

  #writeJson(name: string, value: object): void {
    writeFileSync(this.#pathOf(name), JSON.stringify(value))
  }

  #pathOf(name: string): string {
    return join(this.folder, name)
  }
}
