import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { z } from 'zod'

import { isInstalled } from '../cluster/balancer.ts'
import { documentedYaml, INFRA, type Manifest, readManifests, readYaml } from './manifests.ts'

const manifests = readManifests()
const named = (kind: string, name: string): Manifest => {
  const found = manifests.find((one) => one.kind === kind && one.metadata.name === name)
  if (!found) throw new Error(`no ${kind} is named ${name}`)
  return found
}

const container = z.looseObject({
  name: z.string(),
  image: z.string(),
  env: z.array(z.looseObject({ name: z.string() })).default([]),
  ports: z.array(z.object({ name: z.string(), containerPort: z.int() })).default([]),
  securityContext: z.object({
    allowPrivilegeEscalation: z.literal(false),
    readOnlyRootFilesystem: z.literal(true),
    capabilities: z.object({ drop: z.tuple([z.literal('ALL')]) }),
  }),
  resources: z.object({ requests: z.record(z.string(), z.string()), limits: z.looseObject({ memory: z.string() }) }),
})
const workload = z.looseObject({
  template: z.looseObject({
    metadata: z.looseObject({ labels: z.record(z.string(), z.string()) }),
    spec: z.looseObject({
      automountServiceAccountToken: z.literal(false),
      securityContext: z.looseObject({ runAsNonRoot: z.literal(true), runAsUser: z.int().min(1) }),
      containers: z.array(container).length(1),
    }),
  }),
})
const workloads = manifests.filter(({ kind }) => kind === 'Deployment' || kind === 'Job')
const kustomization = z
  .looseObject({ resources: z.array(z.string()), images: z.array(z.object({ name: z.string(), newTag: z.string() })) })
  .parse(readYaml('kubernetes/kustomization.yaml')[0])

test('the kustomization contains every manifest except the example secret', () => {
  const own = kustomization.resources.filter((name) => !name.startsWith('..'))
  for (const name of kustomization.resources) expect(existsSync(join(INFRA, 'kubernetes', name)), name).toBe(true)
  expect(own.flatMap((name) => readYaml(`kubernetes/${name}`)).length).toBe(manifests.length - 1)
  expect(own).not.toContain('secret.example.yaml')
})

test('management may reach the admin port of validators at the address that each publishes', () => {
  const rule = z.array(z.looseObject({ ports: z.array(z.object({ port: z.int() })) })).length(1)
  const peers = (kind: 'ingress' | 'egress', policy: string) =>
    rule.parse(z.looseObject({ [kind]: z.unknown() }).parse(named('NetworkPolicy', policy).spec)[kind])[0]
  expect(peers('ingress', 'keyward-decide-in')).toEqual({
    from: [{ podSelector: { matchLabels: { app: 'keyward-management' } } }],
    ports: [{ port: 9080 }],
  })
  expect(peers('egress', 'keyward-decide-out')).toEqual({
    to: [{ podSelector: { matchLabels: { app: 'keyward-validator' } } }],
    ports: [{ port: 9080 }],
  })
  const [validator] = workload.parse(named('Deployment', 'keyward-validator').spec).template.spec.containers
  expect(validator?.env).toContainEqual({ name: 'VALIDATOR_ADMIN_URL', value: 'http://$(POD_IP):9080' })
})

test.each(workloads.map((one) => [one.metadata.name, one] as const))(
  '%s runs without privileges, with a read-only file system and limits',
  (_name, one) => {
    const [only] = workload.parse(one.spec).template.spec.containers
    expect(kustomization.images.map(({ name }) => name)).toContain(only?.image)
  },
)

test.each(['keyward-validator', 'keyward-management', 'keyward-balancer'])(
  '%s has a disruption budget of at least one pod',
  (name) => {
    const { template } = workload.parse(named('Deployment', name).spec)
    const budget = z
      .object({ minAvailable: z.int().min(1), selector: z.object({ matchLabels: z.record(z.string(), z.string()) }) })
      .parse(named('PodDisruptionBudget', name).spec)
    expect(template.metadata.labels).toMatchObject(budget.selector.matchLabels)
    const service = z.looseObject({ selector: z.record(z.string(), z.string()) }).parse(named('Service', name).spec)
    expect(template.metadata.labels).toMatchObject(service.selector)
  },
)

test('contains no secrets, and passes no secrets of management to the validator', () => {
  const example = z
    .looseObject({ stringData: z.record(z.string(), z.string()) })
    .parse(manifests.find(({ kind }) => kind === 'Secret'))
  const references = (name: string, kind = 'Deployment'): string[] =>
    JSON.stringify(named(kind, name))
      .match(/"secretKeyRef":\{"name":"keyward","key":"\w+"/g)
      ?.map((found) => /"key":"(\w+)"/.exec(found)?.[1] ?? '') ?? []
  expect(references('keyward-validator')).toEqual(['VALIDATOR_DATABASE_URL'])
  const needed = [...references('keyward-management'), ...references('keyward-migrate', 'Job')]
  expect(Object.keys(example.stringData)).toEqual(
    expect.arrayContaining(needed.filter((key) => !key.endsWith('_PREVIOUS'))),
  )
  const literals = workloads.flatMap(
    (one) => workload.parse(one.spec).template.spec.containers[0]?.env.filter((entry) => 'value' in entry) ?? [],
  )
  // The address of the admin port contains no secret, while the addresses of databases do.
  const names = literals.map(({ name }) => name).filter((name) => name !== 'VALIDATOR_ADMIN_URL')
  expect(names.filter((name) => /TOKEN|KEY|URL|PASSWORD/.test(name))).toEqual([])
})

test('the services log in with their own users over verified TLS', () => {
  const example = z
    .looseObject({ stringData: z.record(z.string(), z.string()) })
    .parse(manifests.find(({ kind }) => kind === 'Secret')).stringData
  const userOf = (name: string): string => new URL(example[name] ?? '').username
  expect(userOf('MANAGEMENT_DATABASE_URL')).toBe(example['MANAGEMENT_LOGIN'])
  expect(userOf('VALIDATOR_DATABASE_URL')).toBe(example['VALIDATOR_LOGIN'])
  const modes = Object.entries(example).flatMap(([name, value]) =>
    name.endsWith('_URL') ? [new URL(value).searchParams.get('sslmode')] : [],
  )
  expect(modes).toEqual(Array.from({ length: 4 }, () => 'verify-full'))
  const management = JSON.stringify(named('Deployment', 'keyward-management'))
  expect(management).toContain('"name":"DATABASE_URL","valueFrom":{"secretKeyRef":{"name":"keyward","key":"MANAGEMENT_')
  expect(management).not.toMatch(/"key":"(?:ADMIN_)?DATABASE_URL"/)
})

test('only the services and the migration can reach Postgres', () => {
  const policy = z.looseObject({
    podSelector: z.looseObject({
      matchExpressions: z.array(z.object({ values: z.array(z.string()) })).optional(),
    }),
    egress: z.array(z.looseObject({ ports: z.array(z.looseObject({ port: z.int() })) })).default([]),
  })
  const policies = manifests.flatMap(({ kind, spec }) => (kind === 'NetworkPolicy' ? [policy.parse(spec)] : []))
  const toPostgres = policies.filter(({ egress }) =>
    egress.some(({ ports }) => ports.some(({ port }) => port === 5432)),
  )
  expect(toPostgres.map(({ podSelector }) => podSelector.matchExpressions?.[0]?.values)).toEqual([
    ['keyward-validator', 'keyward-management', 'keyward-migrate'],
  ])
})

const scraping = documentedYaml('docs/operations/install.md', 'scrape_configs:')

test('the documented scrape configuration yields the jobs of prometheus.yml', () => {
  const relabeling = z.object({
    source_labels: z.array(z.string()),
    regex: z.string().optional(),
    action: z.string().optional(),
    target_label: z.string().optional(),
  })
  const scrapeConfigs = z.object({
    scrape_configs: z.array(z.looseObject({ job_name: z.string(), relabel_configs: z.array(relabeling).default([]) })),
  })
  const rules = scrapeConfigs.parse(parse(scraping)).scrape_configs.flatMap((one) => one.relabel_configs)
  const scraped = new RegExp(`^(?:${rules.find(({ action }) => action === 'keep')?.regex})$`)
  const label = rules.find((rule) => rule.target_label === 'job')?.source_labels[0]?.split('pod_label_')[1] ?? ''
  const jobs = manifests.flatMap((one) => {
    if (one.kind !== 'Deployment') return []
    const { metadata, spec } = workload.parse(one.spec).template
    const ports = spec.containers.flatMap((only) => only.ports.filter(({ name }) => scraped.test(name)))
    return ports.map(() => metadata.labels[label])
  })
  const shipped = scrapeConfigs
    .parse(readYaml('prometheus/prometheus.yml')[0])
    .scrape_configs.map((one) => one.job_name)
  expect(jobs).toHaveLength(shipped.length)
  expect(new Set(jobs)).toEqual(new Set(shipped))
})

describe.skipIf(!isInstalled('promtool', '--version'))('promtool (needs prometheus)', () => {
  test('accepts the documented scrape configuration for Kubernetes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-kubernetes-'))
    // Some packages of Prometheus do not support the discovery of pods.
    const anywhere = scraping.replace(/kubernetes_sd_configs: .*/, 'static_configs: [{ targets: [pod] }]')
    writeFileSync(join(folder, 'prometheus.yml'), anywhere)
    const check = (): string =>
      execFileSync('promtool', ['check', 'config', '--syntax-only', 'prometheus.yml'], {
        cwd: folder,
        encoding: 'utf8',
      })
    expect(check()).toContain('SUCCESS')
    rmSync(folder, { recursive: true })
  })
})

describe.skipIf(!isInstalled('kubectl', 'kustomize', '--help'))('kustomize (needs kubectl)', () => {
  test('applies the images and proxies of the documented overlay', () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-kubernetes-'))
    for (const name of ['kubernetes', 'haproxy'])
      cpSync(join(INFRA, name), join(folder, 'infra', name), { recursive: true })
    mkdirSync(join(folder, 'production'))
    const overlay = documentedYaml('docs/operations/install.md', 'resources:').replace('10.0.0.0/8', '10.64.0.0/10')
    writeFileSync(join(folder, 'production', 'kustomization.yaml'), overlay)
    const built = execFileSync('kubectl', ['kustomize', 'production'], { cwd: folder, encoding: 'utf8' })
    const images = [...built.matchAll(/image: (\S*keyward\S*)/g)].map(([, image]) => image)
    expect(new Set(images)).toEqual(
      new Set(['migrate', 'validator', 'management'].map((part) => `images.example.com/keyward-${part}:0.1.0`)),
    )
    expect(built).toContain('TRUSTED_PROXIES: 10.64.0.0/10')
    rmSync(folder, { recursive: true })
  })
})

test("the balancer's configuration differs from haproxy/haproxy.cfg only in its servers", () => {
  const withoutServers = (path: string): string[] =>
    readFileSync(join(INFRA, path), 'utf8')
      .replace(/^[^]*?(?=^global$)/m, '')
      .split('\n')
      .filter((line) => !/^ {4}server(?:-template)? /.test(line))
  expect(withoutServers('kubernetes/haproxy.cfg')).toEqual(withoutServers('haproxy/haproxy.cfg'))
})

describe.skipIf(!isInstalled('haproxy', '-v') || !isInstalled('openssl', 'version'))('haproxy (needs haproxy)', () => {
  test('accepts the configuration for Kubernetes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-kubernetes-'))
    const pem = join(folder, 'tls.pem')
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=localhost']
    // Certificate and key are in separate files, as in the volume of the secret.
    execFileSync('openssl', ['req', '-x509', ...options, '-keyout', `${pem}.key`, '-out', pem], { stdio: 'ignore' })
    const text = readFileSync(join(INFRA, 'kubernetes/haproxy.cfg'), 'utf8').replaceAll('/etc/keyward', folder)
    writeFileSync(join(folder, 'haproxy.cfg'), text)
    const check = (): Buffer =>
      execFileSync('haproxy', ['-c', '-f', join(folder, 'haproxy.cfg')], { cwd: join(INFRA, 'haproxy'), stdio: 'pipe' })
    expect(check().toString()).toContain('valid')
    rmSync(folder, { recursive: true })
  })
})
