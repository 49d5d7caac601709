/**
 * Connects a baseline to the program that started it, and runs a server of another project, such as nginx, beside a baseline. Determines
 * which baselines this machine can run.
 */

import { execFileSync, spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** The time within which a server must accept connections. nginx loads a million licenses before it listens. */
const START_LIMIT_MS = 240_000
const POLL_MS = 50

/**
 * A shell between the baseline and the server. The standard input of the shell closes when the baseline ends, even by SIGKILL. The shell
 * then ends the server.
 */
const GUARD = `exec 3<&0
"$@" 3<&- & server=$!
{ read -r _ <&3; kill -TERM $server; } 2>/dev/null & watch=$!
exec 3<&-
wait $server; code=$?
kill $watch 2>/dev/null
exit $code`

interface Companion {
  stop: () => void
}

/** The folder of nginx's modules on Debian. */
export const MODULE_FOLDER = '/usr/lib/nginx/modules'
/** The paths at which Debian installs the Lua module `cjson`, on x86-64 and arm64. */
const LUA_JSON = ['/usr/lib/x86_64-linux-gnu/lua/5.1/cjson.so', '/usr/lib/aarch64-linux-gnu/lua/5.1/cjson.so']

export type BaselineName = 'ceiling' | 'nginx-lua' | 'fastify-redis' | 'express-postgres'

/** Returns the command that installs the missing packages of a baseline on Debian, or null if the baseline can run. */
export function missingPackages(name: BaselineName): string | null {
  if (name === 'nginx-lua') {
    const found =
      isInstalled('nginx') &&
      existsSync(join(MODULE_FOLDER, 'ngx_http_lua_module.so')) &&
      LUA_JSON.some((path) => existsSync(path))
    return found ? null : 'apt-get install nginx-light libnginx-mod-http-lua lua-cjson'
  }
  if (name === 'fastify-redis') return isInstalled('redis-server') ? null : 'apt-get install redis-server'
  return null
}

/**
 * Sends the port over the IPC channel, or prints the address if there is no channel. Ends the baseline on SIGTERM or SIGINT, or when the
 * channel closes. `close` stops listening.
 */
export function announce(port: number, close: () => void): void {
  if (process.send === undefined) console.log(`http://127.0.0.1:${port}`)
  else process.send({ type: 'listening', port })
  const stop = (): void => {
    close()
    process.exit(0)
  }
  process.once('SIGTERM', stop)
  process.once('SIGINT', stop)
  process.once('disconnect', stop)
}

/** Returns whether the command is installed. Debian installs servers into /usr/sbin, which is not in every PATH. */
function isInstalled(command: string): boolean {
  try {
    execFileSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore', env: withSystemPath() })
    return true
  } catch {
    return false
  }
}

/** Creates a folder for the files of a server. `remove` deletes it. */
export function serverFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), 'keyward-baseline-'))
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) }
}

/** Returns a free TCP port of the loopback address. */
export async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve))
  const address = server.address()
  await new Promise<void>((resolve) => server.close(() => resolve()))
  if (address === null || typeof address === 'string') throw new Error('the system assigned no port')
  return address.port
}

/**
 * Starts a server and resolves when it accepts connections. Rejects with the output of the server if the server ends, or does not accept
 * connections in time.
 */
export async function startCompanion(
  command: readonly string[],
  target: { port: number } | { path: string },
): Promise<Companion> {
  const child = spawn('/bin/sh', ['-c', GUARD, 'keyward-baseline-guard', ...command], {
    env: withSystemPath(),
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  let output = ''
  let ended = false
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (output = (output + text).slice(-4000)))
  child.once('close', () => (ended = true))
  const stop = (): void => void child.stdin.end()
  for (const start = performance.now(); performance.now() - start < START_LIMIT_MS;) {
    if (ended) throw new Error(`${command[0]} ended: ${output.trim()}`)
    if (await accepts(target)) return { stop }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
  stop()
  throw new Error(`${command[0]} did not start in time: ${output.trim()}`)
}

function accepts(target: { port: number } | { path: string }): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = 'port' in target ? connect(target.port, '127.0.0.1') : connect(target.path)
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false))
    socket.once('connect', () => socket.destroy())
  })
}

function withSystemPath(): Record<string, string> {
  return { PATH: `${process.env['PATH'] ?? ''}:/usr/sbin:/usr/bin:/sbin:/bin` }
}
