/**
 * Installs Keyward on a cluster with the commands and the overlay of docs/operations/install.md. The files of the project are copied, so
 * that the overlay is beside `infra`.
 */

import { execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

import { z } from 'zod'

import { provideBaseImages } from '../../containers/support/base-images.ts'
import type { Edge } from '../../containers/support/callers.ts'
import { docker } from '../../containers/support/docker.ts'
import { HOST } from '../../containers/support/installation.ts'
import type { Cluster } from './cluster.ts'

const ROOT = join(import.meta.dirname, '../../..')
const POSTGRES = join(import.meta.dirname, 'postgres.yaml')
const PROGRAMS = ['migrate', 'validator', 'management']
/** The host name of the documents, which the certificate contains too. */
const DOCUMENTED_HOST = 'licenses.example.com'
/** The versions of APIs that Kubernetes 1.20 lacks, and those that it has instead. Both have the same fields. */
const OLDER_APIS = [
  ['PodDisruptionBudget', 'policy/v1beta1'],
  ['HorizontalPodAutoscaler', 'autoscaling/v2beta2'],
] as const

const SMOKE_TEST = `resources: [../infra/kubernetes/smoke-test]
images: [{ name: keyward-migrate, newName: images.example.com/keyward-migrate, newTag: '1.0.0' }]
`

const serviceSchema = z.object({
  spec: z.object({ ports: z.array(z.object({ name: z.string(), nodePort: z.int() })) }),
})

export class Setup implements Edge {
  readonly #cluster: Cluster
  readonly #secrets = new Map<string, string>()

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    const tracked = execFileSync('git', ['ls-files', '-z'], { cwd: ROOT, encoding: 'utf8' }).split('\0').filter(Boolean)
    for (const path of tracked) {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true })
      cpSync(join(ROOT, path), join(this.folder, path))
    }
    for (const name of ['POSTGRES', 'OWNER', 'MANAGEMENT', 'VALIDATOR'])
      this.#secrets.set(`${name}_PASSWORD`, random(16))
    for (const name of ['OPERATOR_TOKEN', 'MASTER_KEY']) this.#secrets.set(name, random(32))
  }

  get folder(): string {
    return join(this.#cluster.folder, 'project')
  }

  get address(): string {
    return this.#cluster.address
  }

  /** The port of the node at which the balancer's service is published. */
  get port(): number {
    const service = this.#cluster.kubectl(['-n', 'keyward', 'get', 'service', 'keyward-balancer', '--output=json'])
    const { ports } = serviceSchema.parse(JSON.parse(service)).spec
    return ports.find(({ name }) => name === 'https')?.nodePort ?? 0
  }

  get certificate(): string {
    return join(this.folder, 'tls.crt')
  }

  secret(name: string): string {
    return this.#secrets.get(name) ?? ''
  }

  /** Builds the images under the names of the document. */
  buildImages(): void {
    const node = provideBaseImages()['NODE_IMAGE'] ?? 'node:24-trixie-slim'
    for (const program of PROGRAMS) {
      const file = `infra/docker/${program}.Dockerfile`
      const image = `images.example.com/keyward-${program}:1.0.0`
      docker(['build', '--build-arg', `NODE_IMAGE=${node}`, '--file', file, '--tag', image, '.'], { cwd: this.folder })
    }
  }

  /** Writes the overlay of the document, with this cluster's images and secrets, and applies the objects that it needs. */
  prepare(): void {
    const document = readFileSync(join(this.folder, 'docs/operations/install.md'), 'utf8')
    const [, documented = ''] = /\*\*2\. Write an overlay[^]*?```yaml\n([^]*?)```/.exec(document) ?? []
    // The cluster has no cert-manager, so the secret with the certificate is created below, as the document describes.
    let overlay = documented.replace('  - ../infra/kubernetes/components/certificate\n', '')
    const haproxy = provideBaseImages()['HAPROXY_IMAGE']
    if (haproxy !== undefined) {
      docker(['tag', haproxy, `${haproxy}:1`])
      overlay = overlay.replace('images:\n', `images:\n  - { name: haproxy, newName: ${haproxy}, newTag: '1' }\n`)
    }
    this.#write('production/kustomization.yaml', overlay)
    const administrator = `postgres://postgres:${this.secret('POSTGRES_PASSWORD')}@postgres.postgres:5432/postgres`
    const lines = [...this.#secrets].map(([name, value]) => `${name}=${value}`)
    const options = 'sslmode=verify-full&sslrootcert=/etc/keyward-postgres/ca.crt'
    this.#write('production/secrets.env', [...lines, `ADMIN_DATABASE_URL=${administrator}?${options}`].join('\n'))
    this.#write('smoke-test/kustomization.yaml', SMOKE_TEST)
    this.createCertificate()
    this.#certify('postgres', 'postgres.postgres')
    const { kubectl } = this
    kubectl('create', 'namespace', 'keyward')
    kubectl('-n', 'keyward', 'create', 'secret', 'tls', 'keyward-tls', '--cert=tls.crt', '--key=tls.key')
    kubectl('-n', 'keyward', 'create', 'secret', 'generic', 'keyward-postgres-ca', '--from-file=ca.crt=postgres.crt')
    const token = `--from-literal=OPERATOR_TOKEN=${this.secret('OPERATOR_TOKEN')}`
    kubectl('-n', 'keyward', 'create', 'secret', 'generic', 'keyward-smoke-test', token)
  }

  /** Creates a certificate for the balancer, in place of an earlier one. */
  createCertificate(): void {
    this.#certify('tls', HOST, DOCUMENTED_HOST)
  }

  /** Starts a single Postgres with TLS in the namespace `postgres`. */
  startPostgres(): void {
    const image = provideBaseImages()['POSTGRES_IMAGE']
    if (image !== undefined) docker(['tag', image, `${image}:1`])
    const { kubectl } = this
    kubectl('create', 'namespace', 'postgres')
    kubectl('-n', 'postgres', 'create', 'secret', 'tls', 'postgres-tls', '--cert=postgres.crt', '--key=postgres.key')
    const password = `--from-literal=POSTGRES_PASSWORD=${this.secret('POSTGRES_PASSWORD')}`
    kubectl('-n', 'postgres', 'create', 'secret', 'generic', 'postgres', password)
    const manifest = readFileSync(POSTGRES, 'utf8')
      .replace('postgres:18', image === undefined ? 'postgres:18' : `${image}:1`)
      .replaceAll('DATA_FOLDER', join(this.#cluster.folder, 'postgres'))
    this.#cluster.kubectl(['apply', '--filename=-'], manifest)
  }

  /** Applies a folder with a kustomization, as `kubectl apply -k` does, with the APIs of the cluster. */
  apply(folder: string): void {
    const rendered = this.kubectl('kustomize', folder)
    const bent = rendered.split('\n---\n').map((object) => {
      const [, version] = OLDER_APIS.find(([kind]) => object.includes(`\nkind: ${kind}\n`)) ?? []
      return version === undefined ? object : object.replace(/^apiVersion: .*$/m, `apiVersion: ${version}`)
    })
    this.#cluster.kubectl(['apply', '--filename=-'], bent.join('\n---\n'))
  }

  /** Runs kubectl in the folder of the project. */
  readonly kubectl = (...args: readonly string[]): string =>
    execFileSync('kubectl', args, { cwd: this.folder, encoding: 'utf8', env: this.#cluster.environment })

  #certify(name: string, ...hosts: string[]): void {
    const names = hosts.map((host) => `DNS:${host}`).join()
    const subject = ['-subj', `/CN=${hosts[0]}`, '-addext', `subjectAltName=${names}`]
    const files = ['-out', `${name}.crt`, '-keyout', `${name}.key`]
    const created = ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2']
    execFileSync('openssl', [...created, ...subject, ...files], { cwd: this.folder, stdio: 'ignore' })
  }

  #write(path: string, text: string): void {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true })
    writeFileSync(join(this.folder, path), text)
  }
}

function random(bytes: number): string {
  return execFileSync('openssl', ['rand', '-hex', String(bytes)], { encoding: 'utf8' }).trim()
}
