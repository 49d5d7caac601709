/**
 * Renders the overlays with kubectl, compares the manifests with the stored output, and validates them. After a change of the manifests,
 * `npm run test:slow -- infra/test/kubernetes-rendering.slow.test.ts -u` stores the new output for review.
 */

import { execFileSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join, relative } from 'node:path'

import { describe, expect, test } from 'vitest'
import { parseAllDocuments, stringify } from 'yaml'
import { z } from 'zod'

import { isInstalled } from '../cluster/balancer.ts'
import { isBuiltIn, KUBERNETES_VERSIONS, violations } from './kubernetes-schemas.ts'
import { INFRA, type Manifest, manifestSchema, readYaml } from './manifests.ts'

const KUBERNETES = join(INFRA, 'kubernetes')
const COMPONENTS = readdirSync(join(KUBERNETES, 'components'))

function render(folder: string): Manifest[] {
  const text = execFileSync('kubectl', ['kustomize', folder], { cwd: KUBERNETES, encoding: 'utf8' })
  return parseAllDocuments(text).map((document) => {
    if ('errors' in document && document.errors.length > 0) throw document.errors[0] ?? new Error(folder)
    return manifestSchema.parse(document.toJS({}))
  })
}

/** Renders the base with every component, in a new folder beside the overlays. */
function renderAll(): Manifest[] {
  const folder = mkdtempSync(join(KUBERNETES, 'overlays', 'test-'))
  try {
    const components = COMPONENTS.map((name) => relative(folder, join(KUBERNETES, 'components', name)))
    writeFileSync(join(folder, 'kustomization.yaml'), stringify({ resources: ['../../base'], components }))
    return render(folder)
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const sets = [
  ['small', () => render('overlays/small')],
  ['production', () => render('overlays/production')],
  ['every component', renderAll],
  ['the smoke test', () => render('smoke-test')],
  ['Postgres', () => render('postgres')],
] as const

/** Returns a manifest as stored: without the contents of files, which the hash in the name of a ConfigMap represents. */
function storedForm(manifest: Manifest): string {
  const withoutFiles = (_key: string, value: unknown): unknown =>
    typeof value === 'string' && value.length > 1_000 ? '(a file)' : value
  const plain: unknown = JSON.parse(JSON.stringify(manifest, withoutFiles))
  return `---\n${stringify(plain, { sortMapEntries: true, lineWidth: 0 })}`
}

const deployment = z.looseObject({
  replicas: z.int().optional(),
  strategy: z.object({ rollingUpdate: z.object({ maxSurge: z.int() }) }),
  template: z.looseObject({
    spec: z.looseObject({
      containers: z.array(
        z.looseObject({ resources: z.object({ requests: z.object({ cpu: z.string(), memory: z.string() }) }) }),
      ),
    }),
  }),
})
const autoscaler = z.looseObject({
  minReplicas: z.int(),
  maxReplicas: z.int(),
  scaleTargetRef: z.object({ kind: z.string(), name: z.string() }),
})

const named = (all: readonly Manifest[], kind: string, name: string): Manifest | undefined =>
  all.find((one) => one.kind === kind && one.metadata.name === name)

/** Returns the number of cores, such as 0.25 for `250m`. */
const cores = (cpu: string): number => (cpu.endsWith('m') ? Number(cpu.slice(0, -1)) / 1_000 : Number(cpu))

/** Returns the requested cores of all pods at the smallest scale. */
function requestedCores(all: readonly Manifest[]): number {
  const least = new Map(
    all.flatMap((one) => {
      const scaled = one.kind === 'HorizontalPodAutoscaler' ? autoscaler.parse(one.spec) : undefined
      return scaled ? [[scaled.scaleTargetRef.name, scaled.minReplicas] as const] : []
    }),
  )
  return all.reduce((sum, one) => {
    if (one.kind !== 'Deployment') return sum
    const { replicas, template } = deployment.parse(one.spec)
    const perPod = template.spec.containers.reduce((of, { resources }) => of + cores(resources.requests.cpu), 0)
    return sum + perPod * (replicas ?? least.get(one.metadata.name) ?? 1)
  }, 0)
}

describe.skipIf(!isInstalled('kubectl', 'kustomize', '--help'))(
  'manifests (needs kubectl)',
  { timeout: 60_000 },
  () => {
    test.each(['small', 'production'])('renders the overlay %s as stored', async (name) => {
      const key = ({ kind, metadata }: Manifest): string => `${kind} ${metadata.name}`
      const sorted = render(`overlays/${name}`).toSorted((a, b) => (key(a) < key(b) ? -1 : 1))
      await expect(sorted.map(storedForm).join('')).toMatchFileSnapshot(`rendered/${name}.yaml`)
    })

    test.each(sets)('%s: every built-in manifest is valid in three versions of Kubernetes', async (_name, make) => {
      const builtIn = make().filter(isBuiltIn)
      expect(builtIn.length).toBeGreaterThan(0)
      for (const version of KUBERNETES_VERSIONS)
        expect([version, (await Promise.all(builtIn.map((one) => violations(one, version)))).flat()]).toEqual([
          version,
          [],
        ])
    })

    test.each(KUBERNETES_VERSIONS)(
      'the schemas of %s detect a wrong type, a missing field and a misspelling',
      async (version) => {
        const broken = structuredClone(named(render('overlays/small'), 'Deployment', 'keyward-validator'))
        if (!broken) throw new Error('no validator')
        const { template, ...rest } = z
          .looseObject({ template: z.looseObject({ spec: z.looseObject({}) }) })
          .parse(broken.spec)
        const spec = { ...template.spec, terminationGracePeriodSecond: 30, serviceAccountName: 7 }
        broken.spec = { ...rest, selector: undefined, template: { ...template, spec } }
        const found = await violations(broken, version)
        for (const field of ['selector', 'serviceAccountName', 'terminationGracePeriodSecond'])
          expect(found.join('\n')).toContain(field)
      },
    )

    test('kubectl apply does not change the number of replicas that an autoscaler has set', () => {
      for (const [, make] of sets) {
        const all = make()
        for (const { kind, spec } of all) {
          if (kind !== 'HorizontalPodAutoscaler') continue
          const { scaleTargetRef: target } = autoscaler.parse(spec)
          expect(deployment.parse(named(all, target.kind, target.name)?.spec).replicas).toBeUndefined()
        }
      }
    })

    test('the small overlay requests less than one core, and the quota suffices for an update at the largest scale', () => {
      expect(requestedCores(render('overlays/small'))).toBeLessThan(1)
      const all = render('overlays/production')
      const { maxReplicas } = autoscaler.parse(named(all, 'HorizontalPodAutoscaler', 'keyward-validator')?.spec)
      const validator = deployment.parse(named(all, 'Deployment', 'keyward-validator')?.spec)
      const most = maxReplicas + validator.strategy.rollingUpdate.maxSurge
      const [container] = validator.template.spec.containers
      const { hard } = z
        .object({ hard: z.looseObject({ pods: z.string(), 'requests.cpu': z.string() }) })
        .parse(named(all, 'ResourceQuota', 'keyward')?.spec)
      expect(most * cores(container?.resources.requests.cpu ?? '')).toBeLessThan(Number(hard['requests.cpu']))
      expect(most).toBeLessThan(Number(hard.pods))
    })

    test('a changed setting renames its ConfigMap, so that the pods restart', () => {
      const all = render('overlays/production')
      const maps = all.filter(({ kind }) => kind === 'ConfigMap').map(({ metadata }) => metadata.name)
      const used = [
        ...JSON.stringify(all).matchAll(/"(?:configMapRef|configMapKeyRef|configMap)":\{[^}]*"name":"([\w-]+)"/g),
      ]
      const names = new Set(used.map(([, name]) => name))
      expect(names.size).toBe(5)
      for (const name of names) {
        expect(maps).toContain(name)
        expect(name).toMatch(/-[a-z0-9]{10}$/)
      }
    })

    test('a secretGenerator of an overlay renames the secret in every reference', () => {
      const folder = mkdtempSync(join(KUBERNETES, 'overlays', 'test-'))
      const generator = { name: 'keyward', namespace: 'keyward', literals: ['OWNER_PASSWORD=a'] }
      const kustomization = { resources: ['../../base'], secretGenerator: [generator] }
      writeFileSync(join(folder, 'kustomization.yaml'), stringify(kustomization))
      try {
        const text = JSON.stringify(render(folder))
        const names = new Set([...text.matchAll(/"secretKeyRef":\{[^}]*"name":"([\w-]+)"/g)].map(([, name]) => name))
        expect([...names]).toEqual([expect.stringMatching(/^keyward-[a-z0-9]{10}$/)])
      } finally {
        rmSync(folder, { recursive: true })
      }
    })

    test('the program that sets huge pages runs in a separate namespace', () => {
      const { metadata } = named(renderAll(), 'DaemonSet', 'keyward-huge-pages') ?? {}
      expect(metadata).toMatchObject({ namespace: 'keyward-nodes' })
    })
  },
)

test('the rules for the Prometheus operator equal those in prometheus/rules.yml', () => {
  const [operator] = readYaml('kubernetes/components/monitoring/rules.yaml')
  const [plain] = readYaml('prometheus/rules.yml')
  expect(operator).toMatchObject({ kind: 'PrometheusRule', spec: plain })
  expect(Object.keys(z.looseObject({}).parse(plain))).toEqual(['groups'])
})
