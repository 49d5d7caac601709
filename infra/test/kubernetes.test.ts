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
      containers: z.tuple([container]),
      initContainers: z.array(container).default([]),
      topologySpreadConstraints: z.array(z.looseObject({ topologyKey: z.string() })),
    }),
  }),
})
const workloads = manifests.filter(({ kind }) => kind === 'Deployment')
const kustomization = z
  .looseObject({ resources: z.array(z.string()), images: z.array(z.object({ name: z.string(), newTag: z.string() })) })
  .parse(readYaml('kubernetes/base/kustomization.yaml')[0])

test('the kustomization contains every manifest except the example secret', () => {
  const own = kustomization.resources.filter((name) => !name.startsWith('..'))
  for (const name of kustomization.resources) expect(existsSync(join(INFRA, 'kubernetes/base', name)), name).toBe(true)
  expect(own.flatMap((name) => readYaml(`kubernetes/base/${name}`)).length).toBe(manifests.length - 1)
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
  expect(validator?.env).toContainEqual({ name: 'KEYWARD_VALIDATOR_ADMIN_URL', value: 'http://$(POD_IP):9080' })
})

test.each(workloads.map((one) => [one.metadata.name, one] as const))(
  '%s runs without privileges, with a read-only file system and limits',
  (_name, one) => {
    const { containers, initContainers, topologySpreadConstraints } = workload.parse(one.spec).template.spec
    for (const { image } of [...containers, ...initContainers])
      expect(kustomization.images.map(({ name }) => name)).toContain(image)
    expect(topologySpreadConstraints.map(({ topologyKey }) => topologyKey)).toEqual([
      'kubernetes.io/hostname',
      'topology.kubernetes.io/zone',
    ])
  },
)

test.each(['keyward-validator', 'keyward-management', 'keyward-balancer'])(
  '%s loses at most one pod to a drain, at any number of replicas',
  (name) => {
    const { template } = workload.parse(named('Deployment', name).spec)
    const budget = z
      .object({ maxUnavailable: z.literal(1), selector: z.object({ matchLabels: z.record(z.string(), z.string()) }) })
      .parse(named('PodDisruptionBudget', name).spec)
    expect(template.metadata.labels).toMatchObject(budget.selector.matchLabels)
    const service = z.looseObject({ selector: z.record(z.string(), z.string()) }).parse(named('Service', name).spec)
    expect(template.metadata.labels).toMatchObject(service.selector)
  },
)

const example = z
  .looseObject({ stringData: z.record(z.string(), z.string()) })
  .parse(manifests.find(({ kind }) => kind === 'Secret')).stringData
/** The containers that receive secrets. The migration runs in each pod of management before the service. */
const [validator] = workload.parse(named('Deployment', 'keyward-validator').spec).template.spec.containers
const managementPod = workload.parse(named('Deployment', 'keyward-management').spec).template.spec
const [management] = managementPod.containers
const [migration] = managementPod.initContainers

const secretsOf = (one: z.infer<typeof container> | undefined): string[] =>
  [...JSON.stringify(one).matchAll(/"secretKeyRef":\{"name":"keyward","key":"(\w+)"/g)].map(([, key]) => key ?? '')

test('the manifests contain no secrets, and give each container only the secrets that it needs', () => {
  expect(secretsOf(validator)).toEqual(['VALIDATOR_PASSWORD'])
  expect(secretsOf(management)).not.toContain('OWNER_PASSWORD')
  expect(secretsOf(management)).not.toContain('ADMIN_DATABASE_URL')
  expect(secretsOf(migration)).not.toContain('MASTER_KEY')
  const needed = [...secretsOf(validator), ...secretsOf(management), ...secretsOf(migration)]
  expect(new Set(Object.keys(example))).toEqual(new Set(needed.filter((key) => !key.endsWith('_PREVIOUS'))))
  const literals = [validator, management, migration].flatMap(
    (one) => one?.env.filter((entry) => 'value' in entry) ?? [],
  )
  expect(
    literals.filter(({ name, value }) => /TOKEN|_KEY|PASSWORD/.test(name) && !String(value).includes('$(')),
  ).toEqual([])
})

test('each program logs in with its own user over verified TLS', () => {
  const generated = z
    .looseObject({
      configMapGenerator: z.array(z.looseObject({ name: z.string(), literals: z.array(z.string()).default([]) })),
    })
    .parse(readYaml('kubernetes/base/kustomization.yaml')[0]).configMapGenerator
  const database = generated.find(({ name }) => name === 'keyward-database')?.literals ?? []
  expect(database.find((one) => one.startsWith('OPTIONS='))).toContain('sslmode=verify-full')
  const userOf = (one: typeof validator | undefined, variable: string): string => {
    const address = String(one?.env.find(({ name }) => name === variable)?.['value']).replaceAll(
      /\$\((\w+)\)/g,
      (_found, name: string) => name.toLowerCase(),
    )
    expect(address).toMatch(/\?database_options$/)
    return new URL(address).username
  }
  const literal = (name: string): unknown => migration?.env.find((entry) => entry.name === name)?.['value']
  expect(userOf(migration, 'KEYWARD_DATABASE_URL')).toBe('keyward')
  expect(userOf(management, 'KEYWARD_DATABASE_URL')).toBe(literal('KEYWARD_MANAGEMENT_LOGIN'))
  expect(userOf(validator, 'KEYWARD_VALIDATOR_DATABASE_URL')).toBe(literal('KEYWARD_VALIDATOR_LOGIN'))
})

test('management sends dry runs only to pods of validators, whatever a login of validators publishes', () => {
  const urls = management?.env.find(({ name }) => name === 'KEYWARD_VALIDATOR_ADMIN_URLS')?.['value']
  const admin = validator?.ports.find(({ name }) => name === 'admin')
  expect(urls).toBe(`http://${named('Service', 'keyward-validator').metadata.name}:${admin?.containerPort}`)
})

test('the migration waits for Postgres, so that no pod fails', () => {
  expect(z.looseObject({ args: z.array(z.string()) }).parse(migration).args).toEqual([
    'node',
    'infra/migrate/main.ts',
    '--before-service',
  ])
  expect(manifests.filter(({ kind }) => kind === 'Job')).toEqual([])
})

test('the balancer has servers for the largest scale, and its readiness is probed', () => {
  const { maxReplicas } = z
    .looseObject({ maxReplicas: z.int() })
    .parse(named('HorizontalPodAutoscaler', 'keyward-validator').spec)
  const text = readFileSync(join(INFRA, 'kubernetes/base/haproxy.cfg'), 'utf8')
  const places = [...text.matchAll(/server-template validator- (\d+) /g)].map(([, count]) => Number(count))
  expect(places).toHaveLength(2)
  for (const count of places) expect(count).toBeGreaterThan(maxReplicas + 1)
  const [haproxy] = workload.parse(named('Deployment', 'keyward-balancer').spec).template.spec.containers
  expect(haproxy).toMatchObject({
    command: ['sh', 'run.sh', 'haproxy.cfg', '/etc/keyward'],
    readinessProbe: { httpGet: { path: '/readyz' } },
  })
})

test('only the pods of the services can reach Postgres', () => {
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
    ['keyward-validator', 'keyward-management'],
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
  test('promtool accepts the documented scrape configuration for Kubernetes', () => {
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
  test('kustomize applies the images and proxies of the documented overlay', () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-kubernetes-'))
    for (const name of ['kubernetes', 'haproxy', 'grafana'])
      cpSync(join(INFRA, name), join(folder, 'infra', name), { recursive: true })
    mkdirSync(join(folder, 'production'))
    const overlay = documentedYaml('docs/operations/install.md', 'resources:').replace('10.0.0.0/8', '10.64.0.0/10')
    writeFileSync(join(folder, 'production', 'secrets.env'), 'OWNER_PASSWORD=a\n')
    writeFileSync(join(folder, 'production', 'kustomization.yaml'), overlay)
    const built = execFileSync('kubectl', ['kustomize', 'production'], { cwd: folder, encoding: 'utf8' })
    const images = [...built.matchAll(/image: (\S*keyward\S*)/g)].map(([, image]) => image)
    expect(new Set(images)).toEqual(
      new Set(['migrate', 'validator', 'management'].map((part) => `images.example.com/keyward-${part}:1.0.0`)),
    )
    expect(built).toContain('KEYWARD_TRUSTED_PROXIES: 10.64.0.0/10')
    rmSync(folder, { recursive: true })
  })
})

test("the balancer's configuration differs from haproxy/haproxy.cfg only in its servers", () => {
  const withoutServers = (path: string): string[] =>
    readFileSync(join(INFRA, path), 'utf8')
      .replace(/^[^]*?(?=^global$)/m, '')
      .split('\n')
      .filter((line) => !/^ {4}server(?:-template)? /.test(line))
  expect(withoutServers('kubernetes/base/haproxy.cfg')).toEqual(withoutServers('haproxy/haproxy.cfg'))
})

describe.skipIf(!isInstalled('haproxy', '-v') || !isInstalled('openssl', 'version'))('haproxy (needs haproxy)', () => {
  test('haproxy accepts the configuration for Kubernetes', () => {
    const folder = mkdtempSync(join(tmpdir(), 'keyward-kubernetes-'))
    const pem = join(folder, 'tls.pem')
    const options = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-subj', '/CN=localhost']
    // Certificate and key are in separate files, as in the volume of the secret.
    execFileSync('openssl', ['req', '-x509', ...options, '-keyout', `${pem}.key`, '-out', pem], { stdio: 'ignore' })
    const text = readFileSync(join(INFRA, 'kubernetes/base/haproxy.cfg'), 'utf8').replaceAll('/etc/keyward', folder)
    writeFileSync(join(folder, 'haproxy.cfg'), text)
    const check = (): Buffer =>
      execFileSync('haproxy', ['-c', '-f', join(folder, 'haproxy.cfg')], { cwd: join(INFRA, 'haproxy'), stdio: 'pipe' })
    expect(check().toString()).toContain('valid')
    rmSync(folder, { recursive: true })
  })
})
