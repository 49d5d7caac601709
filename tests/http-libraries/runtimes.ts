/**
 * Prepares the releases of Node on which uWebSockets.js is tested. On a system with a C library before 2.38, copies of Node use
 * the C library of Debian 13, which is unpacked into a separate folder. npm packages are compared with their recorded SHA-512.
 */

import { existsSync, mkdirSync, readFileSync, renameSync } from 'node:fs'
import { join } from 'node:path'

import { run, unpackPackages } from '../support/debian-packages.ts'
import { nodeProgram, unpackPackage } from '../support/npm-packages.ts'

const ROOT = join(import.meta.dirname, '../..')
/** The folder that keeps the prepared files for later runs. */
const FOLDER = join(ROOT, 'node_modules/.cache/http-libraries')
const LIBRARIES = 'usr/lib/x86_64-linux-gnu'
/** The oldest glibc that the current release of uWebSockets.js can use. */
const NEEDED_GLIBC = [2, 38] as const

export interface Runtime {
  /** The program that runs the tests. */
  readonly node: string
  readonly env: Record<string, string>
}

/** Returns the Node of the workspace, which loads the previous release of the library. */
export function workspaceRuntime(): Runtime {
  return { node: process.execPath, env: { UWEBSOCKETS_RELEASE: 'previous' } }
}

/**
 * Prepares Node 22, 24 and 26 with the current release of uWebSockets.js. Returns a sentence with the reason if this machine
 * cannot run these releases. The first call downloads about 120 MB.
 */
export function currentRuntimes(): Runtime[] | string {
  if (`${process.platform}-${process.arch}` !== 'linux-x64')
    return `The registry has the current release of uWebSockets.js only for Linux on x64, not for ${process.platform} on ${process.arch}.`
  const isOld = isOlderThanNeeded(glibcVersion())
  if (isOld && !['apt-get', 'dpkg-deb', 'patchelf'].every(isInstalled))
    return 'This system has a C library before 2.38. Install patchelf on a Debian, or use a newer system.'
  const library = isOld ? cLibrary() : null
  const programs = [process.execPath, nodeProgram(24, FOLDER), nodeProgram(26, FOLDER)]
  return programs.map((program) => ({ node: prepared(program, library), env: { UWEBSOCKETS_RELEASE: 'current' } }))
}

function glibcVersion(): string {
  return run(process.execPath, ['-p', 'process.report.getReport().header.glibcVersionRuntime']).trim()
}

function isOlderThanNeeded(version: string): boolean {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major < NEEDED_GLIBC[0] || (major === NEEDED_GLIBC[0] && minor < NEEDED_GLIBC[1])
}

function isInstalled(program: string): boolean {
  return (process.env['PATH'] ?? '').split(':').some((folder) => existsSync(join(folder, program)))
}

/** Returns the folder with the C library of Debian 13. */
function cLibrary(): string {
  const folder = join(FOLDER, 'libc6')
  if (!existsSync(folder)) {
    mkdirSync(FOLDER, { recursive: true })
    unpackPackages(['libc6'], folder)
  }
  return join(folder, LIBRARIES)
}

/**
 * Returns a copy of Node with the binary of uWebSockets.js for its version, which pnpm installs only for the Node of the
 * workspace. Node finds modules in `lib/node` beside its own folder. With a `library`, the copy uses that C library, even for
 * files that it loads later.
 */
function prepared(program: string, library: string | null): string {
  const version = run(program, ['-p', 'process.versions.node']).trim()
  const folder = join(FOLDER, `node-${version}`)
  const node = join(folder, 'bin/node')
  if (existsSync(node)) return node
  unpackPlatformPackage(version.split('.', 1)[0] ?? '', join(folder, 'lib/node/@uwsjs'))
  mkdirSync(join(folder, 'bin'), { recursive: true })
  const unfinished = `${node}.${process.pid}`
  run('cp', [program, unfinished])
  if (library !== null) {
    const path = [library, `/${LIBRARIES}`, '/lib/x86_64-linux-gnu'].join(':')
    run('patchelf', ['--set-interpreter', join(library, 'ld-linux-x86-64.so.2'), unfinished])
    run('patchelf', ['--force-rpath', '--set-rpath', path, unfinished])
  }
  renameSync(unfinished, node)
  return node
}

function unpackPlatformPackage(major: string, modules: string): void {
  const lock = readFileSync(join(ROOT, 'pnpm-lock.yaml'), 'utf8')
  const name = `linux-x64-${major}`
  const entry = new RegExp(
    `^ {2}'@uwsjs/${name}@([\\d.]+)':\\n {4}resolution: \\{integrity: (sha512-[^}]+)\\}`,
    'm',
  ).exec(lock)
  const [, version = '', integrity = ''] = entry ?? []
  unpackPackage(`@uwsjs/${name}@${version}`, integrity, join(modules, name))
}
