/**
 * Provides the programs of Kubernetes, which are built from the source package of Debian 12. Debian packages no newer release except
 * kubectl.
 */

import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'

import { unpackSource } from '../../support/debian-packages.ts'

/** The folder that keeps the programs for later runs. */
const FOLDER = join(import.meta.dirname, '../../../node_modules/.cache/kubernetes')
const PACKAGE = 'kubernetes=1.20.5+really1.20.2*'
const DEBIAN_RELEASE = 'bookworm'
/** The release that the programs report, which the source does not contain. */
export const KUBERNETES_RELEASE = 'v1.20.2'
const VERSION_VARIABLES = [
  'k8s.io/kubernetes/vendor/k8s.io/component-base/version',
  'k8s.io/kubernetes/vendor/k8s.io/client-go/pkg/version',
]

const NAMES = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler', 'kubelet', 'kube-proxy'] as const
export type Program = (typeof NAMES)[number]

/** Returns the paths of the programs. The first call builds them, which takes about ten minutes on two cores. */
export function providePrograms(): Readonly<Record<Program, string>> {
  const missing = NAMES.filter((name) => !existsSync(pathOf(name)))
  if (missing.length > 0) build(missing)
  const [apiserver, manager, scheduler, kubelet, proxy] = NAMES
  return {
    [apiserver]: pathOf(apiserver),
    [manager]: pathOf(manager),
    [scheduler]: pathOf(scheduler),
    [kubelet]: pathOf(kubelet),
    [proxy]: pathOf(proxy),
  }
}

/** Returns whether the programs are built. */
export function arePresent(): boolean {
  return NAMES.every((name) => existsSync(pathOf(name)))
}

function pathOf(name: Program): string {
  return join(FOLDER, 'bin', name)
}

function build(names: readonly Program[]): void {
  const workspace = join(FOLDER, 'source')
  // Go finds the packages in the folder `vendor` only in a workspace of this form.
  const source = join(workspace, 'src/k8s.io/kubernetes')
  unpackSource(PACKAGE, DEBIAN_RELEASE, source)
  mkdirSync(join(FOLDER, 'bin'), { recursive: true })
  const variables = VERSION_VARIABLES.flatMap((path) => [
    `-X ${path}.gitVersion=${KUBERNETES_RELEASE}`,
    `-X ${path}.gitMajor=1`,
    `-X ${path}.gitMinor=20`,
  ])
  const env = {
    ...process.env,
    GOPATH: workspace,
    GO111MODULE: 'off',
    CGO_ENABLED: '0',
    GOCACHE: join(FOLDER, 'cache'),
  }
  const go = (args: readonly string[]): unknown =>
    execFileSync('go', args, { cwd: source, stdio: ['ignore', 'ignore', 'inherit'], env })
  generateDefinitions(source, go)
  for (const name of names) {
    const unfinished = `${pathOf(name)}.unfinished`
    go(['build', '-ldflags', ['-s', '-w', ...variables].join(' '), '-o', unfinished, `./cmd/${name}`])
    renameSync(unfinished, pathOf(name))
  }
  for (const part of ['source', 'cache']) rmSync(join(FOLDER, part), { recursive: true })
}

/** Generates the descriptions of the API's types, which the source leaves out. */
function generateDefinitions(source: string, go: (args: readonly string[]) => unknown): void {
  const tagged = "grep -rl --include=*.go '+k8s:openapi-gen=' pkg vendor/k8s.io/*/"
  const left = "grep -v 'code-generator\\|sample-apiserver\\|kube-openapi'"
  const list = execFileSync('sh', ['-c', `${tagged} | ${left} | xargs -n1 dirname | sort -u`], {
    cwd: source,
    encoding: 'utf8',
  })
  const packages = list
    .trim()
    .split('\n')
    .map((folder) => `k8s.io/kubernetes/${folder}`)
  const output = ['-p', 'k8s.io/kubernetes/pkg/generated/openapi', '-O', 'zz_generated.openapi']
  const header = ['-h', 'hack/boilerplate/boilerplate.generatego.txt', '-r', '/dev/null']
  go(['run', './vendor/k8s.io/kube-openapi/cmd/openapi-gen', '-i', packages.join(), ...output, ...header])
}
