#!/usr/bin/env node
/**
 * The program of the npm package `keyward`. Without arguments or with `start`, starts Keyward with a demo organization in this folder. Also
 * runs the migration and the smoke test. Any other argument is a command of the command line. The demo runs on the Node of an optional
 * package, because one of the two releases of uWebSockets.js has no binary for a newer Node. Runs on Node 20 itself.
 */

import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const LEAST_NODE = 22
const PROGRAMS = new Map([
  ['start', '../start/main.ts'],
  ['migrate', '../migrate/main.ts'],
  ['smoke-test', '../smoke-test/main.ts'],
])
const COMMAND_LINE = '../../packages/cli/src/main.ts'

/** Returns the Node of the optional package for this platform, or undefined. */
function installedNode(): string | undefined {
  const { resolve } = createRequire(import.meta.url)
  for (const name of ['node', 'node-bin'])
    try {
      return join(dirname(resolve(`${name}-${process.platform}-${process.arch}/package.json`)), 'bin/node')
    } catch {
      // The package is not installed.
    }
  return undefined
}

/** Runs the program as a child process, which ends when this process ends. */
function runWith(node: string, main: URL, args: readonly string[]): void {
  // The IPC channel ends the demo when this process is killed. All other signals are passed on.
  const child = spawn(node, [fileURLToPath(main), ...args], { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? (signal === 'SIGINT' ? 130 : 1)
  })
}

const given = process.argv.slice(2)
const [first = 'start'] = given
const name = first === '--demo-data' ? 'start' : first
const args = PROGRAMS.has(first) ? given.slice(1) : given
const main = new URL(PROGRAMS.get(name) ?? COMMAND_LINE, import.meta.url)
const isRecent = Number(process.versions.node.split('.', 1)[0]) >= LEAST_NODE
const node = isRecent && name !== 'start' ? undefined : installedNode()
if (node !== undefined) runWith(node, main, args)
else if (isRecent) {
  process.argv.splice(2, Infinity, ...args)
  await import(main.href)
} else {
  const advice = `Keyward needs Node ${LEAST_NODE} or newer; got ${process.version}. Install it, or install Keyward without --omit=optional.`
  process.stderr.write(`${advice}\n`)
  process.exitCode = 1
}
