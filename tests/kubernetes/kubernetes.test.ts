/**
 * Installs Keyward on a Kubernetes cluster with one node, as docs/operations/install.md describes, and replaces, scales and deletes its pods
 * while apps send checks. The cluster runs Kubernetes 1.20, which Debian packages as source, so two API versions are replaced. Its network
 * enforces no policies. The tests are skipped without root, Docker, kubectl, etcd, Go or the network plugins.
 */

import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { connect } from 'node:tls'

import { beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'

import { Callers, type Vendor } from '../containers/support/callers.ts'
import { HOST } from '../containers/support/installation.ts'
import { figure } from '../faults/support/length.ts'
import { Cluster } from './support/cluster.ts'
import { missingRequirement } from './support/requirements.ts'
import { Setup } from './support/setup.ts'

const missing = missingRequirement()
if (missing !== null) process.stdout.write(`The tests of Kubernetes are skipped: ${missing}.\n`)

const DEPLOYMENTS = ['keyward-validator', 'keyward-management', 'keyward-balancer']
const podsSchema = z.object({
  items: z.array(
    z.object({
      metadata: z.object({ name: z.string() }),
      status: z.object({
        phase: z.string(),
        containerStatuses: z.array(z.object({ restartCount: z.int() })).default([]),
      }),
    }),
  ),
})

describe.skipIf(missing !== null)('Keyward on Kubernetes', () => {
  let cluster: Cluster
  let setup: Setup
  let app: Callers
  let vendor: Vendor
  let smokeTest: string

  const kubectl = (...args: string[]): string => cluster.kubectl(['-n', 'keyward', ...args])
  const podsOf = (name: string): z.infer<typeof podsSchema>['items'] =>
    podsSchema.parse(JSON.parse(kubectl('get', 'pods', `--selector=app=${name}`, '--output=json'))).items
  const restartsOf = (name: string): number =>
    podsOf(name).reduce(
      (sum, { status }) => sum + status.containerStatuses.reduce((all, one) => all + one.restartCount, 0),
      0,
    )
  const replicasOf = (name: string): string =>
    kubectl('get', 'deployment', name, '--output=jsonpath={.status.readyReplicas}')
  /** Runs kubectl without blocking the callers of this process. */
  const inBackground = (...args: string[]): Promise<void> => cluster.kubectlInBackground(args)
  const rolledOut = (name: string): Promise<void> =>
    inBackground('-n', 'keyward', 'rollout', 'status', `deployment/${name}`, '--timeout=3m')

  beforeAll(async () => {
    cluster = new Cluster()
    try {
      await cluster.start()
      setup = new Setup(cluster)
      const buildMs = performance.now()
      setup.buildImages()
      const startMs = performance.now()
      setup.prepare()
      setup.apply('production')
      setup.startPostgres()
      kubectl('wait', '--for=condition=available', 'deployment', '--all', '--timeout=10m')
      app = new Callers(setup)
      await app.untilReady()
      setup.apply('smoke-test')
      kubectl('wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/keyward-smoke-test', '--timeout=3m')
      smokeTest = kubectl('logs', 'keyward-smoke-test')
      figure('Start on Kubernetes', {
        secondsToBuild: Math.round((startMs - buildMs) / 1000),
        secondsToValid: Math.round((performance.now() - startMs) / 1000),
      })
      vendor = await app.createVendor()
    } catch (error) {
      process.stdout.write(cluster.kubectl(['get', 'pods,events', '--all-namespaces']).slice(-4_000))
      await cluster.stop()
      throw error
    }
    return async () => {
      app.close()
      await cluster.stop()
    }
  })

  test('returns a verdict through TLS', () => {
    expect(smokeTest).toContain('The first check is VALID')
    expect(smokeTest).toContain('The installation works.')
  })

  test.each(DEPLOYMENTS)('%s waits for Postgres without a restart', (name) => {
    expect(podsOf(name)).not.toHaveLength(0)
    expect(restartsOf(name)).toBe(0)
  })

  test.each([
    ['keyward-validator', 'validator'],
    ['keyward-management', 'management'],
    ['keyward-balancer', 'haproxy'],
  ])('%s runs without privileges on a read-only file system', (name, container) => {
    const inside = (script: string): string =>
      kubectl('exec', `deployment/${name}`, '-c', container, '--', 'sh', '-c', script)
    expect(inside('id -u')).not.toBe('0\n')
    expect(inside('touch /written 2>&1 || true')).toContain('Read-only file system')
    const status = inside('grep -E "^(CapEff|NoNewPrivs|Seccomp):" /proc/1/status')
    expect(status).toMatch(/CapEff:\t0+\n/)
    expect(status).toMatch(/NoNewPrivs:\t1\n/)
    expect(status).toMatch(/Seccomp:\t2\n/)
  })

  test('the autoscaler starts a second validator, and applying the overlay again keeps the number of validators', async () => {
    await expect.poll(() => replicasOf('keyward-validator')).toBe('2')
    kubectl('scale', 'deployment', 'keyward-validator', '--replicas=3')
    await expect.poll(() => replicasOf('keyward-validator')).toBe('3')
    setup.apply('production')
    await rolledOut('keyward-validator')
    expect(replicasOf('keyward-validator')).toBe('3')
  })

  /** Sends checks while `work` runs, and for two more seconds. Resolves to the codes of the responses. */
  async function codesDuring(what: string, work: () => Promise<void>): Promise<string[]> {
    const codes = await app.checkDuring(
      vendor,
      work().then(() => sleep(2_000)),
    )
    figure(what, codes)
    return Object.keys(codes)
  }

  test.each(DEPLOYMENTS)('replacing all pods of %s fails no check', async (name) => {
    const codes = await codesDuring(`Checks while the pods of ${name} are replaced`, async () => {
      await inBackground('-n', 'keyward', 'rollout', 'restart', `deployment/${name}`)
      await rolledOut(name)
    })
    expect(codes).toEqual(['VALID'])
  })

  test('the forced deletion of a validator fails no check', async () => {
    const pod = podsOf('keyward-validator')[0]?.metadata.name ?? ''
    const codes = await codesDuring('Checks while a validator is deleted by force', async () => {
      await inBackground('-n', 'keyward', 'delete', 'pod', pod, '--grace-period=0', '--force')
      await rolledOut('keyward-validator')
    })
    expect(codes).toEqual(['VALID'])
  })

  test('checks of known machines stay valid while the pod of Postgres is replaced', async () => {
    const codes = await codesDuring('Checks while the pod of Postgres is replaced', async () => {
      await inBackground('-n', 'postgres', 'delete', 'pod', '--selector=app=postgres')
      await inBackground('-n', 'postgres', 'rollout', 'status', 'deployment/postgres', '--timeout=2m')
    })
    expect(codes).toEqual(['VALID'])
    await expect.poll(() => app.check(vendor, 'new-machine')).toBe('VALID')
  })

  test('a change of a value replaces the pods that use it', async () => {
    const before = podsOf('keyward-validator').map(({ metadata }) => metadata.name)
    const file = `${setup.folder}/production/kustomization.yaml`
    const overlay = readFileSync(file, 'utf8')
    expect(overlay).toContain('[KEYWARD_TRUSTED_PROXIES=10.0.0.0/8]')
    writeFileSync(
      file,
      overlay.replace('[KEYWARD_TRUSTED_PROXIES=', '[KEYWARD_LOG_LEVEL=warn, KEYWARD_TRUSTED_PROXIES='),
    )
    setup.apply('production')
    await rolledOut('keyward-validator')
    expect(podsOf('keyward-validator').map(({ metadata }) => metadata.name)).not.toEqual(before)
  })

  test('serves a renewed certificate without a restart', async () => {
    const restarts = restartsOf('keyward-balancer')
    setup.createCertificate()
    const pem = ['--cert=tls.crt', '--key=tls.key', '--dry-run=client', '--output=yaml']
    const renewed = setup.kubectl('-n', 'keyward', 'create', 'secret', 'tls', 'keyward-tls', ...pem)
    cluster.kubectl(['apply', '--filename=-'], renewed)
    const expected = execFileSync('openssl', ['x509', '-noout', '-serial', '-in', setup.certificate], {
      encoding: 'utf8',
    })
    await expect.poll(servedSerial, { timeout: 240_000 }).toBe(expected.trim().replace('serial=', ''))
    expect(restartsOf('keyward-balancer')).toBe(restarts)
  })

  /** Resolves to the serial number of the certificate that the balancer serves. */
  function servedSerial(): Promise<string> {
    return new Promise((resolve, reject) => {
      const { address, port } = setup
      const socket = connect({ host: address, port, servername: HOST, rejectUnauthorized: false }, () => {
        resolve(socket.getPeerCertificate().serialNumber)
        socket.destroy()
      })
      socket.once('error', reject)
    })
  }
})
