/** Inspects containers from inside: their privileges, and the addresses to which they can connect. */

import type { Installation } from './installation.ts'

const CONNECT_SECONDS = 3

export interface Privileges {
  readonly isRoot: boolean
  readonly mayWrite: boolean
  readonly hasCapabilities: boolean
  readonly mayGainPrivileges: boolean
}

export const UNPRIVILEGED: Privileges = {
  isRoot: false,
  mayWrite: false,
  hasCapabilities: false,
  mayGainPrivileges: false,
}

/** Returns the privileges of the first process in a service's container. */
export function privilegesOf(installation: Installation, service: string): Privileges {
  const written = installation.shell(service, 'touch /written 2>&1')
  const status = installation.shell(service, 'grep -E "^(Uid|CapEff|NoNewPrivs):" /proc/1/status')
  return {
    isRoot: !/Uid:\t[1-9]/.test(status),
    mayWrite: !written.includes('Read-only file system'),
    hasCapabilities: !/CapEff:\t0+\n/.test(status),
    mayGainPrivileges: !/NoNewPrivs:\t1/.test(status),
  }
}

/** Returns those of the addresses, such as `10.0.0.2/5432`, to which a service's container can connect. */
export function reachable(installation: Installation, service: string, addresses: readonly string[]): string[] {
  const connect = `timeout ${CONNECT_SECONDS} bash -c "</dev/tcp/$address" 2>/dev/null && echo $address`
  const script = `for address in ${addresses.join(' ')}; do (${connect}) & done; wait; echo tried`
  const lines = installation.shell(service, script).split('\n')
  if (lines.pop() !== 'tried') throw new Error(`${service} cannot run a command.`)
  return lines.toSorted()
}

export interface InsideRequest {
  readonly host: string
  readonly port: number
  readonly method: string
  readonly path: string
}

/** Sends an HTTP request without headers from a service's container. Resolves to the status of the response. */
export async function statusFrom(installation: Installation, service: string, request: InsideRequest): Promise<number> {
  const { host, port, method, path } = request
  const send = `printf '${method} ${path} HTTP/1.0\\r\\n\\r\\n' >&3`
  const command = `exec 3<>/dev/tcp/${host}/${port} && ${send} && head -n 1 <&3`
  const line = await installation.composeInBackground(['exec', '--no-TTY', service, 'bash', '-c', command])
  return Number(/^HTTP\/1\.[01] (\d{3})/.exec(line)?.[1])
}
