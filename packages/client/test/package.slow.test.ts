/** Tests the packed client outside the workspace: its installation with npm, its examples and its types. */

import { execFile, execFileSync } from 'node:child_process'
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'

import { REPOSITORY, VERSION } from '@keyward/contract/version'
import { publint } from 'publint'
import { rolldown } from 'rolldown'
import { afterAll, expect, test } from 'vitest'

import { startGateway } from '../contract-suite/service/gateway.ts'
import { startService } from '../contract-suite/service/service.ts'
import { installClient } from './installed.ts'

const ENTRIES = ['.', './browser', './node', './management']

const folder = installClient()
const tarball = join(folder, `keyward-client-${VERSION}.tgz`)
const service = await startService()
// Some systems, such as containers, have no machine id.
service.license.maxMachines = null
const [key = { keyId: '', publicKey: '' }] = service.publicKeys
const gateway = await startGateway(() => service.url)
afterAll(async () => {
  await Promise.all([gateway.stop(), service.close()])
  rmSync(folder, { recursive: true })
})

const examples = fileURLToPath(new URL('../examples', import.meta.url))
for (const name of ['node-cli.ts', 'desktop-app.ts']) cpSync(join(examples, name), join(folder, name))

test('installs only the client, @noble/curves and its dependency', () => {
  const modules = join(folder, 'node_modules')
  expect(readdirSync(modules).filter((name) => !name.startsWith('.'))).toEqual(['@keyward', '@noble'])
  expect(readdirSync(join(modules, '@keyward'))).toEqual(['client'])
  expect(readdirSync(join(modules, '@noble'))).toEqual(['curves', 'hashes'])
  const manifest: unknown = JSON.parse(readFileSync(join(modules, '@keyward/client/package.json'), 'utf8'))
  expect(manifest).toHaveProperty(['dependencies', '@noble/curves'])
})

test('the package lets a bundler drop unused exports', async () => {
  writeFileSync(join(folder, 'little.js'), `export { memoryStorage } from '@keyward/client'`)
  const build = await rolldown({ input: join(folder, 'little.js') })
  const { output } = await build.generate({ format: 'es', minify: true })
  expect(output[0].code.length).toBeLessThan(300)
})

test('publint finds no mistake in the package', async () => {
  const { messages } = await publint({ pkgDir: join(folder, 'node_modules/@keyward/client'), strict: true })
  expect(messages).toEqual([])
})

/** Prints the problems and entry points that "are the types wrong" finds. A process of its own, because vitest would load its sources. */
const CHECK_TYPES = `
import { readFileSync } from 'node:fs'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
const { problems, entrypoints } = await checkPackage(createPackageFromTarballData(readFileSync(process.argv[1])))
console.log(JSON.stringify({ problems: [...new Set(problems.map(({ kind }) => kind))], entries: Object.keys(entrypoints) }))`

test('types resolve as the code does, for every kind of module', async () => {
  const checked = execFileSync(process.execPath, ['--input-type=module', '--eval', CHECK_TYPES, tarball], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    encoding: 'utf8',
  })
  // The package has only ES modules. `require` loads them in every Node that the package supports.
  expect(JSON.parse(checked)).toEqual({ problems: ['CJSResolvesToESM'], entries: ENTRIES })
  const loaded = ENTRIES.map((entry) => `require('${join('@keyward/client', entry)}')`).join()
  writeFileSync(
    join(folder, 'required.cjs'),
    `console.log([${loaded}].every((exports) => Object.keys(exports).length > 0))`,
  )
  expect(await runNode('required.cjs')).toEqual({ code: 0, output: 'true' })
})

test('the package has less than 120 kB, and names its repository', () => {
  expect(readFileSync(tarball).length).toBeLessThan(120_000)
  const manifest: unknown = JSON.parse(readFileSync(join(folder, 'node_modules/@keyward/client/package.json'), 'utf8'))
  expect(manifest).toMatchObject({
    repository: { url: `git+${REPOSITORY}.git`, directory: 'packages/client' },
    publishConfig: { access: 'public', provenance: true },
  })
})

test('the whole client for browsers has less than 22 kB, minified and compressed', async () => {
  writeFileSync(join(folder, 'whole.js'), `export * from '@keyward/client'; export * from '@keyward/client/browser'`)
  const build = await rolldown({ input: join(folder, 'whole.js'), platform: 'browser' })
  const { output } = await build.generate({ format: 'es', minify: true })
  expect(gzipSync(output[0].code).length).toBeLessThan(22_000)
})

test('runs the command line example online, offline, rejected and misconfigured', async () => {
  const store = join(mkdtempSync(join(folder, 'store-')), 'license.json')
  const run = (env: Record<string, string> = {}) =>
    runNode('node-cli.ts', {
      LICENSE_URL: gateway.url,
      LICENSE_API_KEY: service.apiKey,
      LICENSE_KEY_ID: key.keyId,
      LICENSE_PUBLIC_KEY: key.publicKey,
      LICENSE_KEY: service.licenseKey,
      LICENSE_STORE: store,
      ...env,
    })
  const unreachable = 'The license could not be checked. Connect to the internet and try again. (OFFLINE_REFUSED)'
  const wrongKey = 'The license settings of this app are wrong: UNAUTHORIZED. No such API key.'
  const until = `until ${service.license.expiresAt}`
  expect(await run()).toEqual({ code: 0, output: `Licensed (online), ${until}.` })
  gateway.fault = { kind: 'drop' }
  expect(await run()).toEqual({ code: 0, output: `Licensed (offline), ${until}.` })
  expect(await run({ LICENSE_STORE: `${store}.none` })).toEqual({ code: 1, output: unreachable })
  gateway.fault = { kind: 'none' }
  service.license.rejectedAs = 'REVOKED'
  expect(await run()).toEqual({ code: 1, output: 'The check was rejected. (REVOKED)' })
  service.license.rejectedAs = null
  expect(await run({ LICENSE_API_KEY: 'x' })).toEqual({ code: 1, output: wrongKey })
})

test('runs the desktop example online and then offline with its stored file', async () => {
  const vendor = { baseUrl: gateway.url, apiKey: service.apiKey, publicKeys: service.publicKeys }
  const args = [vendor, service.licenseKey, join(folder, 'userData')].map((value) => JSON.stringify(value)).join(', ')
  writeFileSync(
    join(folder, 'main.ts'),
    `import { startLicensing } from './desktop-app.ts'
     const licensing = await startLicensing(${args}, (allowed: boolean, why: string) => console.log(allowed, why))
     await licensing.stop()`,
  )
  expect(await runNode('main.ts')).toEqual({ code: 0, output: 'true VALID' })
  gateway.fault = { kind: 'drop' }
  expect((await runNode('main.ts')).output).toMatch(/^true Offline, good until 20/)
  gateway.fault = { kind: 'none' }
})

/**
 * A replacement for Electron. It prints the messages that the app sends to its window, enters the license key that the variable ENTER
 * contains, resumes from sleep, and closes the window. As in Electron, the app is ready only after its main module has been evaluated, a
 * window requires a ready app, and a closed window receives nothing. When the last window is closed, the app quits at once unless a listener of
 * `before-quit` prevents this before it returns.
 */
const ELECTRON = `
const { EventEmitter } = require('node:events')
const handlers = new Map()
const windows = new Set()
let becomeReady
let isReady = false
const ready = new Promise((resolve) => (becomeReady = resolve))
class App extends EventEmitter {
  getPath = () => process.env.USER_DATA
  whenReady = () => ready
  quit() {
    let isPrevented = false
    this.emit('before-quit', { preventDefault: () => (isPrevented = true) })
    if (isPrevented) return
    this.emit('will-quit', { preventDefault: () => undefined })
    process.exit()
  }
}
exports.app = new App()
exports.launch = async (main) => {
  await import(main)
  isReady = true
  becomeReady()
  exports.app.emit('ready')
}
exports.ipcMain = { handle: (channel, handler) => void handlers.set(channel, handler) }
exports.BrowserWindow = class extends EventEmitter {
  constructor() {
    super()
    if (!isReady) throw new Error('Cannot create BrowserWindow before app is ready')
    windows.add(this)
  }
  get webContents() {
    if (this.isDestroyed()) throw new TypeError('Object has been destroyed')
    return { send: (channel, { source, valid, code }) => console.log(channel, source, valid, code) }
  }
  isDestroyed() {
    return !windows.has(this)
  }
  async loadFile() {}
}
function closeWindows() {
  for (const window of windows) {
    windows.delete(window)
    window.emit('closed')
  }
  if (!exports.app.emit('window-all-closed')) exports.app.quit()
}
exports.powerMonitor = {
  on: (_event, resume) =>
    setTimeout(async () => {
      if (process.env.ENTER) await handlers.get('enter-license-key')({}, process.env.ENTER)
      await resume()
      closeWindows()
      await resume()
    }),
}
exports.contextBridge = { exposeInMainWorld: (name, api) => console.log(name, Object.keys(api).join()) }
exports.ipcRenderer = {}
`

test('runs the Electron example with a key that is entered once', async () => {
  const app = join(folder, 'electron-app')
  cpSync(join(examples, 'electron'), app, { recursive: true })
  const modules = join(folder, 'node_modules/electron')
  mkdirSync(modules)
  writeFileSync(join(modules, 'package.json'), '{"name":"electron","main":"index.js"}')
  writeFileSync(join(modules, 'index.js'), ELECTRON)
  const vendor = { baseUrl: gateway.url, apiKey: service.apiKey, publicKeys: service.publicKeys }
  writeFileSync(
    join(app, 'launch.mjs'),
    `import { createRequire } from 'node:module'
     createRequire(import.meta.url)('electron').launch(new URL('main.mjs', import.meta.url))`,
  )
  writeFileSync(join(app, 'vendor.mjs'), `export const vendor = ${JSON.stringify(vendor)}`)
  const env = { USER_DATA: mkdtempSync(join(folder, 'user-data-')) }
  const run = async (more: Record<string, string> = {}) =>
    (await runNode('electron-app/launch.mjs', { ...env, ...more })).output.split('\n')
  const online = 'license online true VALID'
  expect(await run()).toEqual([''])
  expect(await run({ ENTER: 'UNKNOWN-KEY' })).toEqual(Array(2).fill('license online false NOT_FOUND'))
  // The third request is that of the file, which arrives after the second verdict. Only an app that delays its end stores it.
  gateway.next = [{ kind: 'none' }, { kind: 'none' }, { kind: 'slow', delayMs: 1000 }]
  expect(await run({ ENTER: service.licenseKey })).toEqual([online, online])
  gateway.fault = { kind: 'drop' }
  expect(await run()).toEqual(Array(2).fill('license offline true VALID'))
  gateway.fault = { kind: 'none' }
  expect(await run()).toEqual([online, online])
  writeFileSync(join(app, 'package.json'), '{"type":"commonjs"}')
  expect((await runNode('electron-app/preload.js')).output).toBe('licensing enterKey,onResult')
})

test.each(['nodenext', 'bundler'])('the package has type declarations that pass strict checks (%s)', (resolution) => {
  writeFileSync(
    join(folder, 'consumer.ts'),
    `import { createLicenseClient, memoryStorage, type ValidationResult } from '@keyward/client'
     import { browserStorage } from '@keyward/client/browser'
     const publicKeys = [{ keyId: 'k', publicKey: 'x' }]
     const options = { baseUrl: '', apiKey: '', publicKeys, licenseKey: '', machineId: null }
     export const client = createLicenseClient({ ...options, storage: browserStorage() })
     export const other = createLicenseClient({ ...options, storage: memoryStorage() })
     export function reason(result: ValidationResult): string {
       if (result.valid) return result.source === 'offline' ? result.refreshAfter : result.code
       return result.code === 'OFFLINE_REFUSED' || result.code === 'CONFIGURATION' ? result.reason : result.message
     }
     export function advice(result: ValidationResult): string {
       if (!result.valid) return result.message
       return ''
     }
     // @ts-expect-error a rejection has no such reason
     export const wrong = (result: ValidationResult) => result.code === 'OFFLINE_REFUSED' && result.reason === 'REVOKED'`,
  )
  const tsc = join(dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')
  const modules =
    resolution === 'nodenext' ? ['--module', 'nodenext'] : ['--module', 'esnext', '--moduleResolution', 'bundler']
  const checks = [
    '--noEmit',
    '--strict',
    '--exactOptionalPropertyTypes',
    '--target',
    'es2022',
    '--lib',
    'es2022,dom',
    ...modules,
  ]
  const check = () =>
    execFileSync(process.execPath, [tsc, ...checks, '--ignoreConfig', 'consumer.ts'], { cwd: folder, encoding: 'utf8' })
  expect(check()).toBe('')
})

function runNode(script: string, env: Record<string, string> = {}): Promise<{ code: number; output: string }> {
  return new Promise((resolve) => {
    const child = execFile(
      process.execPath,
      [script],
      { cwd: folder, env: { ...process.env, ...env } },
      (_, stdout, stderr) => resolve({ code: child.exitCode ?? -1, output: (stdout + stderr).trim() }),
    )
  })
}
