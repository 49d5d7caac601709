/** Runs docker. `DOCKER_HOST` may name the socket of Podman instead. */

import { execFile, spawnSync } from 'node:child_process'
import { promisify } from 'node:util'

const TIMEOUT_MS = 1_200_000
const MAX_OUTPUT = 256 * 1024 * 1024

export interface DockerOptions {
  /** Whether the result of a failed command is returned instead of thrown as an error. */
  readonly mayFail?: boolean
  readonly timeoutMs?: number
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

export interface DockerResult {
  readonly status: number | null
  readonly output: string
}

/** Runs a docker command. If the command fails without `mayFail`, throws an error with the end of its output. */
export function docker(args: readonly string[], options: DockerOptions = {}): DockerResult {
  const { status, stdout, stderr } = spawnSync('docker', args, {
    encoding: 'utf8',
    timeout: options.timeoutMs ?? TIMEOUT_MS,
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    maxBuffer: MAX_OUTPUT,
  })
  if (status !== 0 && !options.mayFail)
    throw new Error(`docker ${args.join(' ')} failed:\n${`${stdout}\n${stderr}`.slice(-4_000)}`)
  return { status, output: stdout }
}

/** Runs a docker command without blocking this process. Resolves to the output of the command. Rejects if the command fails. */
export async function dockerInBackground(args: readonly string[], options: DockerOptions = {}): Promise<string> {
  const { stdout } = await promisify(execFile)('docker', args, {
    timeout: options.timeoutMs ?? TIMEOUT_MS,
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    maxBuffer: MAX_OUTPUT,
  })
  return stdout
}

/** Returns the reason why this machine cannot run the topology, or null. */
export function missingEngine(): string | null {
  if (docker(['compose', 'version'], { mayFail: true }).status !== 0)
    return 'docker with its compose plugin is not installed'
  return missingResponse()
}

/** Returns the reason why this machine runs no container, or null. */
export function missingResponse(): string | null {
  const { status } = docker(['info'], { mayFail: true })
  return status === 0 ? null : 'no container engine responds; start one or set DOCKER_HOST'
}
